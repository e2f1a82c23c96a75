#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// Settings of PyTorch's CUDA caching allocator, as PYTORCH_CUDA_ALLOC_CONF gives them.
namespace profiler {

inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kUnlimitedBytes = std::numeric_limits<int64_t>::max();

/// Sizes of 1, 2, 4, ... 32768 MiB and above: the intervals of roundup_power2_divisions.
inline constexpr std::size_t kRoundupIntervals = 16;

struct AllocatorSettings {
    bool expandable_segments = false;
    int64_t max_split_bytes = kUnlimitedBytes;  // larger blocks are not split
    int64_t large_segment_bytes = 20 * kMiB;    // segment of requests below 10 MiB
    // How much larger a block may be that is not split; by default large_segment_bytes.
    int64_t max_non_split_rounding_bytes = 20 * kMiB;
    double gc_threshold = 0;     // share of the memory limit; 0 = off
    double memory_fraction = 1;  // share of the device that may be reserved
    std::array<int64_t, kRoundupIntervals> roundup_power2_divisions{};  // 0 = off

    friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

/// Reads "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:4,>:8]".
/// Accepts what torch 2.11.0 accepts (leniences and all: separators are not checked, a decimal
/// number may have a tail); settings of pinned memory are checked and have no effect.
/// Errors: what torch refuses, and backend:cudaMallocAsync, which is another allocator.
models::Result<AllocatorSettings> parse_alloc_conf(std::string_view text);

/// In the same syntax, only what differs from the defaults; "" for the defaults.
std::string to_text(const AllocatorSettings& settings);

/// The settings of a recording: its text, then the fields that say what was in force.
AllocatorSettings settings_of(const RecordedSettings& recorded);

}  // namespace profiler
