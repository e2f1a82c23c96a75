#pragma once

#include <cstdint>
#include <string_view>

/// Which numbers a trace may hold. Readers refuse others.
namespace profiler {

/// The values that a column of plain integers may hold.
struct ValueRange {
    int64_t min = INT64_MIN;
    int64_t max = INT64_MAX;
    bool is_summed = false;  // then the sum of all values is at most kMaxColumnSum

    bool holds(int64_t value) const { return value >= min && value <= max; }
    bool holds_everything() const { return min == INT64_MIN && max == INT64_MAX; }
};

inline constexpr double kMaxColumnSum = 0x1p60;  // 1 EiB; 1.15 Eflop

/// The range of a column, by its name. Analyses subtract times and add up bytes, which cannot
/// overflow within these bounds. Numbers that nobody adds up (the wall clock, seeds, addresses) may
/// have any value.
constexpr ValueRange range_of_column(std::string_view name) {
    constexpr int64_t kMost = int64_t{1} << 53;  // 8 PiB; 104 days in nanoseconds
    if (name.ends_with("_bytes") || name == "count")
        return {.min = -1, .max = kMost, .is_summed = true};
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
