#include "profiler/allocator/settings.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

// Sources: c10/core/AllocatorConfig.h and .cpp, c10/cuda/CUDAAllocatorConfig.h and .cpp of torch
// 2.11.0, and headers of 2.12 to 2.15. tests/profiler/allocator/settings_test.cpp has results of
// the real parsers.
namespace profiler {
namespace {

using models::fail;
using models::Result;

constexpr std::array<std::string_view, 7> kDeviceKeys{
    "expandable_segments",          "max_split_size_mb",        "max_non_split_rounding_mb",
    "garbage_collection_threshold", "roundup_power2_divisions", "large_segment_size_mb",
    "per_process_memory_fraction"};
/// Checked, without effect on which memory is taken.
constexpr std::array<std::string_view, 8> kIgnoredFlags{"release_lock_on_cudamalloc",
                                                        "release_lock_on_hipmalloc",
                                                        "pinned_use_cuda_host_register",
                                                        "pinned_use_hip_host_register",
                                                        "graph_capture_record_stream_reuse",
                                                        "pinned_use_background_threads",
                                                        "pinned_free_catch_all",
                                                        "throw_on_cudamalloc_oom"};
constexpr std::array<std::string_view, 2> kIgnoredNumbers{
    // since 2.13
    "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb"};
/// Since 2.15: how many addresses an expandable segment reserves, for all or by classes of streams.
constexpr std::string_view kReserve = "expandable_segments_reserve";
constexpr std::string_view kReserveByClass = "expandable_segments_reserve_by_class";

/// More than any device has; small enough that sums fit into 64 bits.
constexpr int64_t kTooManyBytes = int64_t{1} << 50;

/// "a:1,b:[2,3]" -> "a" ":" "1" "," "b" ":" "[" "2" "," "3" "]"; white space is dropped.
std::vector<std::string> split_tokens(std::string_view text) {
    constexpr std::string_view kWhite = " \t\n\v\f\r";
    std::vector<std::string> tokens;
    bool in_word = false;
    for (const char c : text) {
        if (kWhite.find(c) != std::string_view::npos) continue;
        const bool is_mark = c == ',' || c == ':' || c == '[' || c == ']';
        if (is_mark || !in_word) tokens.emplace_back();
        tokens.back() += c;
        in_word = !is_mark;
    }
    return tokens;
}

class Parser {
public:
    explicit Parser(std::string_view text) : tokens_(split_tokens(text)) {}

    Result<AllocatorSettings> parse() {
        if (auto done = parse_large_segment(); !done) return tl::unexpected(done.error());
        at_ = 0;
        while (at_ < tokens_.size()) {
            key_ = tokens_[at_];
            at_ += 2;  // torch checks neither the colon here nor the comma below
            if (auto done = parse_value(); !done) return tl::unexpected(done.error());
            at_ += 2;
        }
        return settings_;
    }

private:
    /// Read before all others, wherever it stands: two other settings depend on it.
    Result<void> parse_large_segment() {
        key_ = "large_segment_size_mb";
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i] != key_) continue;
            at_ = i + 2;
            const auto bytes = mebibytes(11);
            if (!bytes) return tl::unexpected(bytes.error());
            settings_.large_segment_bytes = std::min(*bytes, kTooManyBytes);
        }
        settings_.max_non_split_rounding_bytes = settings_.large_segment_bytes;
        return {};
    }

    Result<void> parse_value() {
        const auto least = static_cast<uint64_t>(settings_.large_segment_bytes / kMiB);
        if (key_ == "large_segment_size_mb") return {};
        if (key_ == "expandable_segments") return store(settings_.expandable_segments, flag());
        if (key_ == "max_split_size_mb") return store(settings_.max_split_bytes, mebibytes(least));
        if (key_ == "max_non_split_rounding_mb") {
            return store(settings_.max_non_split_rounding_bytes, mebibytes(least));
        }
        if (key_ == "garbage_collection_threshold") return parse_gc_threshold();
        if (key_ == "per_process_memory_fraction") return parse_memory_fraction();
        if (key_ == "roundup_power2_divisions") return parse_divisions();
        return parse_ignored();
    }

    /// Settings without effect on device memory, checked as torch checks them.
    Result<void> parse_ignored() {
        if (std::ranges::count(kIgnoredFlags, key_) > 0) {
            bool ignored = false;
            return store(ignored, flag());
        }
        if (std::ranges::count(kIgnoredNumbers, key_) > 0) {
            uint64_t ignored = 0;
            return store(ignored, whole_number());
        }
        if (key_ == kReserve) {
            std::string ignored;
            return store(ignored, word(at_));
        }
        if (key_ == kReserveByClass) {
            while (at_ < tokens_.size() && tokens_[at_] != "]") ++at_;
            if (at_ < tokens_.size()) return {};
            return fail("The allocator setting {} has a list without its closing bracket.", key_);
        }
        if (key_ == "pinned_num_register_threads") return parse_register_threads();
        if (key_ == "pinned_reserve_segment_size_mb") {
            const auto number = whole_number();
            if (!number) return tl::unexpected(number.error());
            if (*number == 0) return refuse("it must be greater than 0");
            return {};
        }
        if (key_ == "backend") return parse_backend();
        return fail("'{}' is not an allocator setting; torch knows {} (and some of pinned memory).",
                    key_, fmt::join(kDeviceKeys, ", "));
    }

    Result<void> parse_backend() {
        const auto value = word(at_);
        if (!value) return tl::unexpected(value.error());
        if (*value == "native") return {};
        if (*value == "cudaMallocAsync") {
            return fail(
                "backend:cudaMallocAsync is CUDA's own allocator, which is not simulated; "
                "leave it out to simulate the native one.");
        }
        return refuse("it must be native or cudaMallocAsync");
    }

    Result<void> parse_register_threads() {
        const auto number = whole_number();
        if (!number) return tl::unexpected(number.error());
        if (!std::has_single_bit(*number) || *number > 128) {
            return refuse("it must be a power of two, at most 128");
        }
        return {};
    }

    Result<void> parse_gc_threshold() {
        const auto number = real_number();
        if (!number) return tl::unexpected(number.error());
        if (!(*number > 0 && *number < 1)) return refuse("it must lie between 0 and 1");
        settings_.gc_threshold = *number;
        return {};
    }

    Result<void> parse_memory_fraction() {
        const auto number = real_number();
        if (!number) return tl::unexpected(number.error());
        if (!(*number >= 0 && *number <= 1)) return refuse("it must lie in [0, 1]");
        settings_.memory_fraction = *number;
        return {};
    }

    /// One number for all sizes, or a list of "upper MiB:divisions" with ">" for the rest. The
    /// first entry also holds for everything below it.
    Result<void> parse_divisions() {
        auto& divisions = settings_.roundup_power2_divisions;
        const auto first = word(at_);
        if (!first) return tl::unexpected(first.error());
        if (*first == "[") return parse_division_list();
        const auto number = whole_number();
        if (!number) return tl::unexpected(number.error());
        if (!std::has_single_bit(*number)) return refuse("it must be a power of two");
        divisions.fill(capped(*number));
        return {};
    }

    Result<void> parse_division_list() {
        std::optional<std::size_t> last;
        for (++at_; at_ < tokens_.size() && tokens_[at_] != "]"; ++at_) {
            const std::size_t boundary_at = at_;
            at_ += 2;
            const auto divisions = whole_number();
            if (!divisions) return tl::unexpected(divisions.error());
            if (*divisions != 0 && !std::has_single_bit(*divisions)) {
                return refuse("divisions must be 0 or powers of two");
            }
            if (auto done = set_divisions(boundary_at, capped(*divisions), last); !done)
                return done;
            if (at_ + 1 >= tokens_.size()) break;
            if (tokens_[at_ + 1] != "]") ++at_;
        }
        if (at_ >= tokens_.size() || tokens_[at_] != "]") {
            return fail("The allocator setting {} has a list without its closing bracket.", key_);
        }
        return {};
    }

    Result<void> set_divisions(std::size_t boundary_at, int64_t divisions,
                               std::optional<std::size_t>& last) {
        auto& table = settings_.roundup_power2_divisions;
        const auto begin = table.begin();
        if (tokens_[boundary_at] == ">") {
            const std::size_t from = last.value_or(0) + 1;
            if (from < table.size()) {
                std::fill(begin + static_cast<std::ptrdiff_t>(from), table.end(), divisions);
            }
            return {};
        }
        const auto boundary = whole_number(boundary_at);
        if (!boundary) return tl::unexpected(boundary.error());
        if (!std::has_single_bit(*boundary)) {
            return refuse("the sizes before the colons must be powers of two, or >");
        }
        const std::size_t index = std::min<std::size_t>(
            static_cast<std::size_t>(std::bit_width(*boundary)) - 1, table.size() - 1);
        if (!last) std::fill(begin, begin + static_cast<std::ptrdiff_t>(index), divisions);
        table[index] = divisions;
        last = index;
        return {};
    }

    // ---- values -----------------------------------------------------------------------------

    template <typename T>
    static Result<void> store(T& field, const Result<T>& value) {
        if (!value) return tl::unexpected(value.error());
        field = *value;
        return {};
    }

    Result<std::string> word(std::size_t at) const {
        if (at < tokens_.size()) return tokens_[at];
        return fail("The allocator setting {} has no value; write {}:VALUE.", key_, key_);
    }

    tl::unexpected<models::Error> refuse(std::string_view rule) const {
        return fail("The allocator setting {}:{} is refused: {}.", key_,
                    at_ < tokens_.size() ? tokens_[at_] : std::string(), rule);
    }

    Result<bool> flag() const {
        const auto value = word(at_);
        if (!value) return tl::unexpected(value.error());
        if (*value != "True" && *value != "False") return refuse("it must be True or False");
        return *value == "True";
    }

    /// Like std::stoull, which torch uses: a negative number wraps around, letters behind are
    /// ignored.
    Result<uint64_t> whole_number(std::size_t at) const {
        const auto value = word(at);
        if (!value) return tl::unexpected(value.error());
        errno = 0;
        char* end = nullptr;
        const uint64_t number = std::strtoull(value->c_str(), &end, 10);
        if (end == value->c_str()) return refuse(fmt::format("'{}' is not a number", *value));
        if (errno == ERANGE) return refuse("the number is too large");
        return number;
    }
    Result<uint64_t> whole_number() const { return whole_number(at_); }

    /// Like std::stod, but with a decimal point in every locale.
    Result<double> real_number() const {
        const auto value = word(at_);
        if (!value) return tl::unexpected(value.error());
        const char* begin = value->c_str() + (value->starts_with('+') ? 1 : 0);
        double number = 0;
        const auto [end, error] = std::from_chars(begin, value->c_str() + value->size(), number);
        if (error == std::errc::invalid_argument) {
            return refuse(fmt::format("'{}' is not a number", *value));
        }
        if (error == std::errc::result_out_of_range) return refuse("the number is out of range");
        return number;
    }

    Result<int64_t> mebibytes(uint64_t least) const {
        const auto number = whole_number();
        if (!number) return tl::unexpected(number.error());
        if (*number < least) return refuse(fmt::format("it must be at least {}", least));
        constexpr auto kMost = static_cast<uint64_t>(kUnlimitedBytes / kMiB);
        return *number > kMost ? kUnlimitedBytes : static_cast<int64_t>(*number) * kMiB;
    }

    /// More divisions than any block has bytes change nothing; the cap prevents overflow.
    static int64_t capped(uint64_t divisions) {
        return static_cast<int64_t>(std::min(divisions, uint64_t{1} << 52));
    }

    std::vector<std::string> tokens_;
    std::size_t at_ = 0;
    std::string key_;
    AllocatorSettings settings_;
};

bool all_equal(const std::array<int64_t, kRoundupIntervals>& values) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

std::string divisions_text(const std::array<int64_t, kRoundupIntervals>& divisions) {
    if (all_equal(divisions)) return fmt::format("{}", divisions[0]);
    std::string text = "[";
    for (std::size_t i = 0; i < divisions.size(); ++i) {
        text += fmt::format("{}{}:{}", i == 0 ? "" : ",", int64_t{1} << i, divisions[i]);
    }
    return text + "]";
}

}  // namespace

Result<AllocatorSettings> parse_alloc_conf(std::string_view text) { return Parser(text).parse(); }

std::string to_text(const AllocatorSettings& settings) {
    const AllocatorSettings defaults;
    std::vector<std::string> parts;
    const auto add = [&](std::string_view key, const auto& value) {
        parts.push_back(fmt::format("{}:{}", key, value));
    };
    if (settings.expandable_segments) add("expandable_segments", "True");
    if (settings.max_split_bytes != defaults.max_split_bytes) {
        add("max_split_size_mb", settings.max_split_bytes / kMiB);
    }
    if (settings.max_non_split_rounding_bytes != settings.large_segment_bytes) {
        add("max_non_split_rounding_mb", settings.max_non_split_rounding_bytes / kMiB);
    }
    if (settings.large_segment_bytes != defaults.large_segment_bytes) {
        add("large_segment_size_mb", settings.large_segment_bytes / kMiB);
    }
    if (settings.gc_threshold != defaults.gc_threshold) {
        add("garbage_collection_threshold", settings.gc_threshold);
    }
    if (settings.memory_fraction != defaults.memory_fraction) {
        add("per_process_memory_fraction", settings.memory_fraction);
    }
    if (settings.roundup_power2_divisions != defaults.roundup_power2_divisions) {
        add("roundup_power2_divisions", divisions_text(settings.roundup_power2_divisions));
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

std::string name_of(const AllocatorSettings& settings) {
    const std::string text = to_text(settings);
    return text.empty() ? "default settings" : text;
}

AllocatorSettings settings_of(const RecordedSettings& recorded) {
    // The text may be out of date or unknown to this version; the fields hold what was in force.
    AllocatorSettings settings =
        parse_alloc_conf(recorded.alloc_conf).value_or(AllocatorSettings{});
    settings.max_split_bytes =
        recorded.max_split_bytes < 0 ? kUnlimitedBytes : recorded.max_split_bytes;
    settings.gc_threshold = recorded.gc_threshold;
    settings.expandable_segments = recorded.expandable_segments;
    for (std::size_t i = 0; i < recorded.roundup_power2_divisions.size(); ++i) {
        if (i >= kRoundupIntervals) break;
        settings.roundup_power2_divisions[i] = recorded.roundup_power2_divisions[i];
    }
    return settings;
}

TieOrder tie_order_of_torch(std::string_view version) {
    constexpr std::string_view kMajor = "2.";
    int minor = 0;
    if (!version.starts_with(kMajor)) return TieOrder::kAddress;
    version.remove_prefix(kMajor.size());
    std::from_chars(version.data(), version.data() + version.size(), minor);
    if (minor >= 13) return TieOrder::kSegmentAge;
    return minor == 12 ? TieOrder::kBlockAge : TieOrder::kAddress;
}

TieOrder tie_order_of(const Trace& trace) {
    const auto software = nlohmann::json::parse(trace.text(trace.run().software), nullptr,
                                                /*allow_exceptions=*/false);
    if (!software.is_object()) return TieOrder::kAddress;
    const auto torch = software.find("torch");
    if (torch == software.end() || !torch->is_string()) return TieOrder::kAddress;
    return tie_order_of_torch(torch->get_ref<const std::string&>());
}

}  // namespace profiler
