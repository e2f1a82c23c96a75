#include "profiler/allocator/heap.h"

#include "profiler/allocator/sizes.h"

#include <algorithm>

namespace profiler {
namespace {

auto& unmapped_of(Heap& heap, const Block& block) {
    return heap.half_pools[block.pool].unmapped[block.stream];
}

const Reservation& reservation_of(const Heap& heap, const Block& block) {
    return heap.reservations[static_cast<std::size_t>(block.reservation)];
}

/// What the block could grow to.
int64_t expandable_bytes(const Heap& heap, const Block& block) {
    if (block.next == kNoBlock || heap.blocks[block.next].is_mapped()) return block.size_bytes;
    return block.size_bytes + heap.blocks[block.next].size_bytes;
}

/// A new reservation as one unmapped block.
BlockHandle reserve(Heap& heap, const BlockSearch& search) {
    const bool is_small = heap.half_pools[search.half_pool].is_small;
    const int64_t size_bytes = reservation_bytes(heap, is_small);
    const int64_t address =
        heap.driver->reserve_addresses(size_bytes, page_bytes_of(is_small, heap.settings));
    return add_unmapped(heap, {.address = address,
                               .size_bytes = size_bytes,
                               .pool = search.half_pool,
                               .stream = search.stream,
                               .reservation = add_reservation(heap, address, is_small),
                               .order = heap.order_of_new_segment()});
}

/// find_expandable_block: the lowest place where free and unmapped neighbours add up to the size,
/// else a new reservation.
BlockHandle find_expandable(Heap& heap, const BlockSearch& search) {
    const BlockArena& blocks = heap.blocks;
    const auto is_allocatable = [&](BlockHandle block) {
        return block != kNoBlock && blocks[block].is_allocatable();
    };
    for (const auto& [address, handle] :
         heap.half_pools[search.half_pool].unmapped[search.stream]) {
        const BlockHandle previous = blocks[handle].previous;
        const BlockHandle first = is_allocatable(previous) ? previous : handle;
        int64_t found_bytes = 0;
        for (BlockHandle at = first; found_bytes < search.size_bytes && is_allocatable(at);
             at = blocks[at].next) {
            found_bytes += blocks[at].size_bytes;
        }
        if (found_bytes >= search.size_bytes) return first;
    }
    return reserve(heap, search);
}

/// Maps whole pages from the front of an unmapped block until `size_bytes` are mapped; the rest of
/// the block stays unmapped. False when the device is full.
bool map_pages(Heap& heap, BlockHandle handle, int64_t size_bytes) {
    BlockArena& blocks = heap.blocks;
    const Block whole = blocks[handle];
    const int64_t page_bytes = reservation_of(heap, whole).page_bytes;
    const int64_t mapped_bytes = std::min(round_up(size_bytes, page_bytes), whole.size_bytes);
    if (!heap.driver->map(whole.address, mapped_bytes)) return false;

    unmapped_of(heap, whole).erase(whole.address);
    blocks[handle].use = BlockUse::kFree;
    blocks[handle].size_bytes = mapped_bytes;
    if (mapped_bytes < whole.size_bytes) {
        Block rest = whole;
        rest.address += mapped_bytes;
        rest.size_bytes -= mapped_bytes;
        rest.order = heap.order_of_part(whole);
        blocks.link(handle, add_unmapped(heap, rest), whole.next);
    }
    heap.count_reserved(whole.pool, mapped_bytes);
    heap.log(RecordedAction::kSegmentMap, blocks[handle], mapped_bytes);
    heap.absorb(handle, blocks[handle].previous);
    heap.absorb(handle, blocks[handle].next);
    heap.insert_free(handle);
    return true;
}

/// The part [begin, end) of a free block becomes a free block of its own.
BlockHandle add_free_part(Heap& heap, const Block& whole, int64_t begin, int64_t end) {
    Block part = whole;
    part.address = begin;
    part.size_bytes = end - begin;
    part.order = heap.order_of_part(whole);
    const BlockHandle added = heap.blocks.add(part);
    heap.insert_free(added);
    return added;
}

void unmap_pages(Heap& heap, BlockHandle handle) {
    BlockArena& blocks = heap.blocks;
    const Block whole = blocks[handle];
    const Reservation& reservation = reservation_of(heap, whole);
    const int64_t base = reservation.address;
    const int64_t begin = base + round_up(whole.address - base, reservation.page_bytes);
    const int64_t end = base + round_down(whole.end() - base, reservation.page_bytes);
    if (begin >= end) return;

    heap.erase_free(whole);
    if (begin > whole.address) {
        blocks.link(whole.previous, add_free_part(heap, whole, whole.address, begin), handle);
    }
    if (end < whole.end()) {
        blocks.link(handle, add_free_part(heap, whole, end, whole.end()), whole.next);
    }
    Block& block = blocks[handle];
    block.address = begin;
    block.size_bytes = end - begin;
    block.use = BlockUse::kUnmapped;
    heap.driver->unmap(begin, end - begin);
    heap.count_reserved(block.pool, begin - end);
    heap.log(RecordedAction::kSegmentUnmap, block, end - begin);
    heap.absorb(handle, block.previous);
    heap.absorb(handle, block.next);
    unmapped_of(heap, block).emplace(block.address, handle);
}

}  // namespace

Heap::Heap(const AllocatorSettings& chosen, std::optional<int64_t> limit, TieOrder order,
           Driver& source)
    : settings(chosen), limit_bytes(limit), tie_order(order), driver(&source) {
    add_pool(0);
}

// ---- free blocks ------------------------------------------------------------------------------

void Heap::insert_free(BlockHandle handle) {
    Block& block = blocks[handle];
    HalfPool& half = half_pools[block.pool];
    block.searches_when_freed = half.num_searches;
    half.free[block.stream].insert({block.size_bytes, block.address, handle, block.order});
}

int64_t Heap::merge(BlockHandle handle, BlockHandle neighbour) {
    Block& block = blocks[handle];
    const Block& other = blocks[neighbour];
    if (other.use == BlockUse::kFree) {
        erase_free(other);
    } else {
        half_pools[other.pool].unmapped[other.stream].erase(other.address);
    }
    if (block.previous == neighbour) {
        block.address = other.address;
        blocks.link(other.previous, handle, block.next);
    } else {
        blocks.link(block.previous, handle, other.next);
    }
    const int64_t gained_bytes = other.size_bytes;
    block.size_bytes += gained_bytes;
    blocks.remove(neighbour);
    return gained_bytes;
}

void Heap::finish_free(BlockHandle handle) {
    Block& block = blocks[handle];
    use.active_bytes -= block.size_bytes;
    use.requested_bytes -= block.requested_bytes;
    block.use = BlockUse::kFree;
    block.requested_bytes = 0;
    int64_t absorbed_bytes = absorb(handle, block.previous);
    absorbed_bytes += absorb(handle, block.next);
    insert_free(handle);
    if (!block.is_expandable()) {
        use.inactive_split_bytes += (block.is_split() ? block.size_bytes : 0) - absorbed_bytes;
        peak.inactive_split_bytes = std::max(peak.inactive_split_bytes, use.inactive_split_bytes);
    }
}

// ---- segments ---------------------------------------------------------------------------------

BlockHandle Heap::add_segment(const BlockSearch& search, int64_t size_bytes) {
    const auto address = driver->allocate_segment(size_bytes);
    if (!address) return kNoBlock;
    const BlockHandle block = blocks.add({.address = *address,
                                          .size_bytes = size_bytes,
                                          .pool = search.half_pool,
                                          .stream = search.stream,
                                          .use = BlockUse::kFree,
                                          .order = order_of_new_segment()});
    ++num_segments;
    count_reserved(search.half_pool, size_bytes);
    log(RecordedAction::kSegmentAlloc, blocks[block], size_bytes);
    return block;
}

void Heap::release_segment(BlockHandle handle) {
    const Block& block = blocks[handle];
    log(RecordedAction::kSegmentFree, block, block.size_bytes);
    driver->free_segment(block.address, block.size_bytes);
    --num_segments;
    count_reserved(block.pool, -block.size_bytes);
    erase_free(block);
    blocks.remove(handle);
}

void Heap::count_reserved(uint32_t half_pool, int64_t bytes) {
    use.reserved_bytes += bytes;
    pool_of(half_pool).reserved_bytes += bytes;
    peak.reserved_bytes = std::max(peak.reserved_bytes, use.reserved_bytes);
}

// ---- pools and streams ------------------------------------------------------------------------

std::size_t Heap::add_pool(int64_t id) {
    const std::size_t index = pools.size();
    pools.push_back({.id = id});
    for (const bool is_small : {true, false}) {
        HalfPool half;
        half.pool = index;
        half.is_small = is_small;
        half.free.resize(streams.size());
        half.unmapped.resize(streams.size());
        half_pools.push_back(std::move(half));
    }
    return index;
}

uint32_t Heap::add_stream(int64_t stream) {
    streams.push_back(stream);
    for (HalfPool& half : half_pools) {
        half.free.resize(streams.size());
        half.unmapped.resize(streams.size());
    }
    return static_cast<uint32_t>(streams.size() - 1);
}

std::vector<uint32_t> Heap::streams_by_handle() const {
    std::vector<uint32_t> order(streams.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    std::ranges::sort(order, {}, [&](uint32_t s) { return static_cast<uint64_t>(streams[s]); });
    return order;
}

// ---- counters and events ----------------------------------------------------------------------

void Heap::raise_peaks() {
    const auto raise = [](int64_t& maximum, int64_t now) { maximum = std::max(maximum, now); };
    raise(peak.allocated_bytes, use.allocated_bytes);
    raise(peak.active_bytes, use.active_bytes);
    raise(peak.requested_bytes, use.requested_bytes);
    raise(peak.reserved_bytes, use.reserved_bytes);
    raise(peak.inactive_split_bytes, use.inactive_split_bytes);
}

void Heap::log(RecordedAction action, const Block& block, int64_t size_bytes) {
    events.push_back({.action = action,
                      .address = block.address,
                      .size_bytes = size_bytes,
                      .stream = streams[block.stream],
                      .pool = pool_of(block.pool).id});
}

FreeIndex::Place best_expandable_place(const Heap& heap, const FreeIndex& index,
                                       FreeIndex::Place place) {
    for (auto next = index.next(place); next != index.end(); next = index.next(place)) {
        const Block& block = heap.blocks[index[place].block];
        if (!block.is_expandable()) break;
        const Block& other = heap.blocks[index[next].block];
        if (expandable_bytes(heap, other) >= expandable_bytes(heap, block)) break;
        place = next;
    }
    return place;
}

BlockHandle allocate_expandable(Heap& heap, const BlockSearch& search) {
    BlockArena& blocks = heap.blocks;
    BlockHandle block = find_expandable(heap, search);
    if (!blocks[block].is_mapped() &&
        !map_pages(heap, block, std::min(blocks[block].size_bytes, search.size_bytes))) {
        return kNoBlock;
    }
    while (blocks[block].size_bytes < search.size_bytes) {
        // free -> unmapped -> ...; mapping the front of `next` merges the free block into it.
        const BlockHandle next = blocks[block].next;
        const int64_t missing_bytes = search.size_bytes - blocks[block].size_bytes;
        if (!map_pages(heap, next, std::min(missing_bytes, blocks[next].size_bytes))) {
            return kNoBlock;
        }
        block = next;
    }
    heap.erase_free(blocks[block]);
    return block;
}

void release_pages(Heap& heap, BlockHandle handle) {
    unmap_pages(heap, handle);
    const Block& block = heap.blocks[handle];
    if (block.use != BlockUse::kUnmapped || block.is_split()) return;
    heap.driver->release_addresses(block.address, block.size_bytes);
    unmapped_of(heap, block).erase(block.address);
    --heap.num_segments;
    heap.blocks.remove(handle);
}

int32_t add_reservation(Heap& heap, int64_t address, bool is_small) {
    heap.reservations.push_back(
        {address, reservation_bytes(heap, is_small), page_bytes_of(is_small, heap.settings)});
    ++heap.num_segments;
    return static_cast<int32_t>(heap.reservations.size() - 1);
}

BlockHandle add_unmapped(Heap& heap, const Block& block) {
    const BlockHandle handle = heap.blocks.add(block);
    heap.blocks[handle].use = BlockUse::kUnmapped;
    unmapped_of(heap, block).emplace(block.address, handle);
    return handle;
}

int64_t reservation_bytes(const Heap& heap, bool is_small) {
    const int64_t total_bytes = heap.driver->total_bytes();
    return round_up(total_bytes + total_bytes / 8, page_bytes_of(is_small, heap.settings));
}

}  // namespace profiler
