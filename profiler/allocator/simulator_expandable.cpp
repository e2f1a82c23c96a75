#include "profiler/allocator/simulator.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>

/// Expandable segments: address space reserved once per half pool and stream, into which memory
/// is mapped page by page as blocks need it.
///
///     reservation  | allocated |   free   |     unmapped      ...  to 9/8 of the device's memory |
///                  |<- page ->|<- page ->|                     map grows the free block before it
namespace profiler {

/// What the block could grow to: best fit counts the address space behind it.
int64_t Simulator::expandable_size(const Block& block) const {
    if (block.next == kNoBlock || blocks_[block.next].is_mapped()) return block.size_bytes;
    return block.size_bytes + blocks_[block.next].size_bytes;
}

/// From the first block that fits, forward while the next one could grow to less.
FreeIndex::Place Simulator::best_expandable(const FreeIndex& index, FreeIndex::Place place) const {
    for (auto next = index.next(place); next != index.end(); next = index.next(place)) {
        const Block& block = blocks_[index[place].block];
        if (!block.is_expandable()) break;
        if (expandable_size(blocks_[index[next].block]) >= expandable_size(block)) break;
        place = next;
    }
    return place;
}

/// try_allocate_expandable_block. Memory that was mapped before the device was full stays, free.
BlockHandle Simulator::allocate_expandable(const Search& search) {
    BlockHandle block = find_expandable(search);
    if (!blocks_[block].is_mapped() &&
        !map_block(block, std::min(blocks_[block].size_bytes, search.size_bytes))) {
        return kNoBlock;
    }
    while (blocks_[block].size_bytes < search.size_bytes) {
        // free -> unmapped -> ...; mapping the front of `next` merges the free block into it.
        const BlockHandle next = blocks_[block].next;
        const int64_t missing_bytes = search.size_bytes - blocks_[block].size_bytes;
        if (!map_block(next, std::min(missing_bytes, blocks_[next].size_bytes))) return kNoBlock;
        block = next;
    }
    erase_free(blocks_[block]);
    return block;
}

/// find_expandable_block: the lowest place where free and unmapped neighbours add up to the size,
/// else a new reservation.
BlockHandle Simulator::find_expandable(const Search& search) {
    const auto& unmapped = half_pools_[search.half_pool].unmapped[search.stream];
    const auto is_allocatable = [&](BlockHandle block) {
        return block != kNoBlock && blocks_[block].is_allocatable();
    };
    for (const auto& [address, handle] : unmapped) {
        const BlockHandle previous = blocks_[handle].previous;
        const BlockHandle first = is_allocatable(previous) ? previous : handle;
        int64_t found_bytes = 0;
        for (BlockHandle at = first; found_bytes < search.size_bytes && is_allocatable(at);
             at = blocks_[at].next) {
            found_bytes += blocks_[at].size_bytes;
        }
        if (found_bytes >= search.size_bytes) return first;
    }
    return reserve(search);
}

BlockHandle Simulator::reserve(const Search& search) {
    const int64_t page_bytes = page_bytes_of(half_pools_[search.half_pool].is_small, settings_);
    // One segment alone can hold the whole device even when it is fragmented.
    const int64_t size_bytes =
        round_up(driver_->total_bytes() + driver_->total_bytes() / 8, page_bytes);
    const int64_t address = driver_->reserve_addresses(size_bytes, page_bytes);
    reservations_.push_back({address, size_bytes, page_bytes});
    ++num_segments_;
    const BlockHandle block =
        blocks_.add({.address = address,
                     .size_bytes = size_bytes,
                     .pool = search.half_pool,
                     .stream = search.stream,
                     .reservation = static_cast<int32_t>(reservations_.size() - 1),
                     .use = BlockUse::kUnmapped});
    half_pools_[search.half_pool].unmapped[search.stream].emplace(address, block);
    return block;
}

/// Maps whole pages from the front of an unmapped block until `size_bytes` are there; what is
/// left of it stays unmapped. False when the device is full.
bool Simulator::map_block(BlockHandle handle, int64_t size_bytes) {
    const Block whole = blocks_[handle];
    const int64_t page_bytes =
        reservations_[static_cast<std::size_t>(whole.reservation)].page_bytes;
    const int64_t mapped_bytes = std::min(round_up(size_bytes, page_bytes), whole.size_bytes);
    if (!driver_->map(whole.address, mapped_bytes)) return false;

    auto& unmapped = half_pools_[whole.pool].unmapped[whole.stream];
    unmapped.erase(whole.address);
    blocks_[handle].use = BlockUse::kFree;
    blocks_[handle].size_bytes = mapped_bytes;
    if (mapped_bytes < whole.size_bytes) {
        Block rest = whole;
        rest.address += mapped_bytes;
        rest.size_bytes -= mapped_bytes;
        const BlockHandle rest_handle = blocks_.add(rest);
        blocks_.link(handle, rest_handle, whole.next);
        unmapped.emplace(rest.address, rest_handle);
    }
    use_.reserved_bytes += mapped_bytes;
    pools_[half_pools_[whole.pool].pool].reserved_bytes += mapped_bytes;
    raise_peaks();
    log(RecordedAction::kSegmentMap, blocks_[handle], mapped_bytes);
    absorb(handle, blocks_[handle].previous);
    absorb(handle, blocks_[handle].next);
    insert_free(handle);
    return true;
}

/// Unmaps the whole pages inside a free block; what is left before and after them stays free.
void Simulator::unmap_block(BlockHandle handle) {
    const Block whole = blocks_[handle];
    const Reservation& reservation = reservations_[static_cast<std::size_t>(whole.reservation)];
    const int64_t base = reservation.address;
    const int64_t begin = base + round_up(whole.address - base, reservation.page_bytes);
    const int64_t end = base + round_down(whole.end() - base, reservation.page_bytes);
    if (begin >= end) return;

    erase_free(whole);
    if (begin > whole.address) {
        Block before = whole;
        before.size_bytes = begin - whole.address;
        const BlockHandle added = blocks_.add(before);
        blocks_.link(whole.previous, added, handle);
        insert_free(added);
    }
    if (end < whole.end()) {
        Block after = whole;
        after.address = end;
        after.size_bytes = whole.end() - end;
        const BlockHandle added = blocks_.add(after);
        blocks_.link(handle, added, whole.next);
        insert_free(added);
    }
    Block& block = blocks_[handle];
    block.address = begin;
    block.size_bytes = end - begin;
    block.use = BlockUse::kUnmapped;
    driver_->unmap(begin, end - begin);
    use_.reserved_bytes -= end - begin;
    pools_[half_pools_[block.pool].pool].reserved_bytes -= end - begin;
    log(RecordedAction::kSegmentUnmap, block, end - begin);
    absorb(handle, block.previous);
    absorb(handle, block.next);
    half_pools_[block.pool].unmapped[block.stream].emplace(block.address, handle);
}

/// Gives the address space back once nothing in it is mapped.
void Simulator::release_reservation(BlockHandle handle) {
    const Block& block = blocks_[handle];
    if (block.use != BlockUse::kUnmapped || block.is_split()) return;
    driver_->release_addresses(block.address, block.size_bytes);
    half_pools_[block.pool].unmapped[block.stream].erase(block.address);
    --num_segments_;
    blocks_.remove(handle);
}

}  // namespace profiler
