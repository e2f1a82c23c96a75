#pragma once

#include "profiler/allocator/settings.h"

#include <cstdint>

/// How the allocator rounds what it is asked for (CUDACachingAllocator.cpp: round_size,
/// get_allocation_size; constants of c10/core/AllocatorConfig.h).
namespace profiler {

inline constexpr int64_t kMinBlockBytes = 512;           // blocks are multiples of it
inline constexpr int64_t kSmallRequestBytes = kMiB;      // up to here: the small pool
inline constexpr int64_t kSmallSegmentBytes = 2 * kMiB;  // a segment of the small pool
inline constexpr int64_t kMinLargeBytes = 10 * kMiB;     // from here a segment of its own
inline constexpr int64_t kLargeGranuleBytes = 2 * kMiB;  // ... rounded up to this

/// The block that a request gets: 512-byte steps, or steps of a power of two's part.
///
///     divisions = 4:   1024 ... 1280 ... 1536 ... 1792 ... 2048      (KiB)
///     1200 KiB            └──────^ rounds up to the next of them
int64_t round_size(int64_t requested_bytes, const AllocatorSettings& settings);

constexpr bool is_small_size(int64_t block_bytes) { return block_bytes <= kSmallRequestBytes; }

/// What is asked of the driver when no free block fits.
int64_t segment_bytes_for(int64_t block_bytes, const AllocatorSettings& settings);

/// Page of an expandable segment: mapped and unmapped as a whole.
constexpr int64_t page_bytes_of(bool is_small, const AllocatorSettings& settings) {
    return is_small ? kSmallSegmentBytes : settings.large_segment_bytes;
}

constexpr int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }
constexpr int64_t round_down(int64_t bytes, int64_t step) { return bytes / step * step; }

}  // namespace profiler
