#include "profiler/allocator/sizes.h"

#include <algorithm>
#include <bit>

namespace profiler {
namespace {

int64_t divisions_for(int64_t bytes, const AllocatorSettings& settings) {
    constexpr int kFirst = std::bit_width(static_cast<uint64_t>(kMiB)) - 1;
    const auto log2 = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 1;
    const int interval = std::clamp(log2 - kFirst, 0, static_cast<int>(kRoundupIntervals) - 1);
    return settings.roundup_power2_divisions[static_cast<std::size_t>(interval)];
}

int64_t round_up_to_division(int64_t bytes, int64_t divisions) {
    const auto size = static_cast<uint64_t>(bytes);
    if (std::has_single_bit(size)) return bytes;
    const uint64_t floor = std::bit_floor(size);
    const uint64_t step = floor >> (std::bit_width(static_cast<uint64_t>(divisions)) - 1);
    if (step == 0) return static_cast<int64_t>(floor << 1);
    return static_cast<int64_t>((size + step - 1) & ~(step - 1));
}

}  // namespace

int64_t round_size(int64_t requested_bytes, const AllocatorSettings& settings) {
    if (requested_bytes < kMinBlockBytes) return kMinBlockBytes;
    const int64_t divisions = divisions_for(requested_bytes, settings);
    if (divisions > 1 && requested_bytes > kMinBlockBytes * divisions) {
        return round_up_to_division(requested_bytes, divisions);
    }
    return round_up(requested_bytes, kMinBlockBytes);
}

int64_t segment_bytes_for(int64_t block_bytes, const AllocatorSettings& settings) {
    if (is_small_size(block_bytes)) return kSmallSegmentBytes;
    if (block_bytes < kMinLargeBytes) return settings.large_segment_bytes;
    return round_up(block_bytes, kLargeGranuleBytes);
}

}  // namespace profiler
