#include "profiler/addresses/driver_addresses.h"

#include <algorithm>
#include <iterator>

namespace profiler {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{32} << 20;

uint64_t end_of(AddressRanges::const_iterator range) { return range->first + range->second; }

/// Adds a range. Joins it with a neighbour if `joins` is true of the address between the two.
template <typename Joins>
AddressRanges::iterator add_range(AddressRanges& ranges, uint64_t address, uint64_t size,
                                  Joins joins) {
    auto range = ranges.emplace(address, size).first;
    const auto next = std::next(range);
    if (next != ranges.end() && end_of(range) == next->first && joins(next->first)) {
        range->second += next->second;
        ranges.erase(next);
    }
    if (range == ranges.begin()) return range;
    const auto before = std::prev(range);
    if (end_of(before) != address || !joins(address)) return range;
    before->second += range->second;
    ranges.erase(range);
    return before;
}

}  // namespace

DriverAddresses::DriverAddresses(uint64_t begin, uint64_t size, SegmentPlacement placement)
    : begin_(begin), size_(size) {
    if (placement == SegmentPlacement::kChunks) {
        free_.emplace(begin, size);
    } else {  // one chunk; what lies behind it is for take_aligned
        const uint64_t chunk_bytes = size / 4;
        chunks_.emplace(begin, 0);  // no hole has this size, so the chunk is never given back
        holes_.emplace(begin, chunk_bytes);
        free_.emplace(begin + chunk_bytes, size - chunk_bytes);
    }
}

std::optional<uint64_t> DriverAddresses::take(uint64_t size) {
    if (const auto address = take_hole(size)) return address;
    const uint64_t chunk_bytes = round_up(size, kChunkBytes);
    const auto chunk = take_aligned(chunk_bytes, kChunkBytes);
    if (chunk && chunk_bytes > size) holes_.emplace(*chunk + size, chunk_bytes - size);
    return chunk;
}

std::optional<uint64_t> DriverAddresses::take_hole(uint64_t size) {
    const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                   [&](const auto& range) { return range.second >= size; });
    if (hole == holes_.end()) return std::nullopt;
    const auto [address, bytes] = *hole;
    holes_.erase(hole);
    if (bytes > size) holes_.emplace(address + size, bytes - size);
    return address;
}

std::optional<uint64_t> DriverAddresses::take_aligned(uint64_t size, uint64_t alignment) {
    for (auto range = free_.end(); range != free_.begin();) {
        --range;
        const auto [address, bytes] = *range;
        if (size > bytes) continue;
        const uint64_t start = (address + bytes - size) / alignment * alignment;
        if (start < address) continue;
        free_.erase(range);
        if (start > address) free_.emplace(address, start - address);
        const uint64_t behind = address + bytes - (start + size);
        if (behind > 0) free_.emplace(start + size, behind);
        chunks_.emplace(start, size);
        return start;
    }
    return std::nullopt;
}

void DriverAddresses::give_back(uint64_t address, uint64_t size) {
    const auto begins_no_chunk = [this](uint64_t border) { return !chunks_.contains(border); };
    give_back_chunk_of(add_range(holes_, address, size, begins_no_chunk));
}

void DriverAddresses::give_back_chunk_of(AddressRanges::iterator hole) {
    const auto [address, size] = *hole;
    const auto chunk = chunks_.find(address);
    if (chunk == chunks_.end() || chunk->second != size) return;
    holes_.erase(hole);
    chunks_.erase(chunk);
    add_range(free_, address, size, [](uint64_t) { return true; });
}

}  // namespace profiler
