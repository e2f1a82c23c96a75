#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// Settings of PyTorch's CUDA caching allocator, as PYTORCH_CUDA_ALLOC_CONF gives them.
namespace profiler {

inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kUnlimitedBytes = std::numeric_limits<int64_t>::max();

/// The intervals of roundup_power2_divisions begin at 1, 2, 4, ... 32768 MiB.
inline constexpr std::size_t kRoundupIntervals = 16;

struct AllocatorSettings {
    bool expandable_segments = false;
    int64_t max_split_bytes = kUnlimitedBytes;  // blocks of this size and above are not split
    int64_t large_segment_bytes = 20 * kMiB;    // of a segment for blocks below 10 MiB
    // An unsplit block must be less than this larger than its request; default large_segment_bytes.
    int64_t max_non_split_rounding_bytes = 20 * kMiB;
    double gc_threshold = 0;     // share of the memory limit; 0 = off
    double memory_fraction = 1;  // share of the device that may be reserved
    std::array<int64_t, kRoundupIntervals> roundup_power2_divisions{};  // 0 = off

    friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

/// Reads "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:4,>:8]".
/// Accepts exactly what torch 2.11.0 accepts: it does not check separators, and it ignores letters
/// behind a number. It also accepts what 2.12 to 2.15 added. Settings of pinned memory are checked
/// but have no effect.
/// Errors: what torch refuses, and backend:cudaMallocAsync, which is another allocator.
models::Result<AllocatorSettings> parse_alloc_conf(std::string_view text);

/// The settings that differ from the defaults, in the same syntax; "" if none does.
std::string to_text(const AllocatorSettings& settings);

/// The same for people: "default settings" if none does.
std::string name_of(const AllocatorSettings& settings);

/// The settings of a recording. Its fields overrule its text.
AllocatorSettings settings_of(const RecordedSettings& recorded);

/// The order that a version of torch uses, such as "2.13.0+cu130". An unknown version counts as
/// 2.11.
TieOrder tie_order_of_torch(std::string_view version);

/// The order of the torch that a trace names. A trace of a snapshot names it if the snapshot tells.
TieOrder tie_order_of(const Trace& trace);

}  // namespace profiler
