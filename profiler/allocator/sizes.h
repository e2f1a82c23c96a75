#pragma once

#include "profiler/allocator/settings.h"

#include <cstdint>

/// How the allocator rounds requests (CUDACachingAllocator.cpp: round_size, get_allocation_size;
/// constants of c10/core/AllocatorConfig.h).
namespace profiler {

inline constexpr int64_t kMinBlockBytes = 512;           // block sizes are multiples of it
inline constexpr int64_t kSmallRequestBytes = kMiB;      // up to here from the small pool
inline constexpr int64_t kSmallSegmentBytes = 2 * kMiB;  // a segment of the small pool
inline constexpr int64_t kMinLargeBytes = 10 * kMiB;     // from here on, a segment for itself
inline constexpr int64_t kLargeGranuleBytes = 2 * kMiB;  // ... in multiples of this

/// The size of the block for a request: a multiple of 512 bytes, or with divisions a step between
/// two powers of two.
///
///     divisions = 4:   1024 ... 1280 ... 1536 ... 1792 ... 2048      (KiB)
///     1200 KiB            └──────^ rounds up to the next step
int64_t round_size(int64_t requested_bytes, const AllocatorSettings& settings);

constexpr bool is_small_size(int64_t block_bytes) { return block_bytes <= kSmallRequestBytes; }

/// The size of the segment to ask the driver for when no free block fits.
int64_t segment_bytes_for(int64_t block_bytes, const AllocatorSettings& settings);

/// The page of an expandable segment: the unit in which it is mapped and unmapped.
constexpr int64_t page_bytes_of(bool is_small, const AllocatorSettings& settings) {
    return is_small ? kSmallSegmentBytes : settings.large_segment_bytes;
}

constexpr int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }
constexpr int64_t round_down(int64_t bytes, int64_t step) { return bytes / step * step; }

}  // namespace profiler
