#pragma once

#include <cstdint>
#include <string_view>

/// Which numbers a file may hold. Private to profiler/trace.
namespace profiler {

/// What values a column of plain integers may hold, by its name.
struct ValueRange {
    int64_t min = INT64_MIN;
    int64_t max = INT64_MAX;
    bool is_summed = false;  // then all values together are at most kMaxColumnSum

    bool holds(int64_t value) const { return value >= min && value <= max; }
    bool holds_everything() const { return min == INT64_MIN && max == INT64_MAX; }
};

inline constexpr double kMaxColumnSum = 0x1p60;  // 1 EiB; 1.15 Eflop

/// Analyses subtract times and add up bytes: within these bounds that cannot overflow, whatever a
/// file says. What is used for no arithmetic (the wall clock, seeds, addresses) may be anything.
constexpr ValueRange range_of_column(std::string_view name) {
    constexpr int64_t kMost = int64_t{1} << 53;  // 8 PiB; 104 days in nanoseconds
    if (name.ends_with("_bytes")) return {.min = -1, .max = kMost, .is_summed = true};
    if (name == "event" || name.ends_with("_event") || name == "batch_size" || name == "seq_len" ||
        name == "num_layers" || name == "layer") {
        return {.min = -1, .max = kMost};
    }
    if (name == "flop" || name == "words" || name.ends_with("_words")) {
        return {.min = 0, .max = kMost, .is_summed = true};
    }
    if (name.ends_with("_ns") && name != "start_unix_ns") return {.min = -kMost, .max = kMost};
    return {};
}

}  // namespace profiler
