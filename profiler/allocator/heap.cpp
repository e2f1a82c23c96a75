#include "profiler/allocator/heap.h"

#include <algorithm>

namespace profiler {

Heap::Heap(const AllocatorSettings& chosen, std::optional<int64_t> limit, Driver& source)
    : settings(chosen), limit_bytes(limit), driver(&source) {
    add_pool(0);
}

// ---- free blocks ------------------------------------------------------------------------------

void Heap::insert_free(BlockHandle handle) {
    Block& block = blocks[handle];
    HalfPool& half = half_pools[block.pool];
    block.searches_when_freed = half.num_searches;
    half.free[block.stream].insert({block.size_bytes, block.address, handle});
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
                                          .use = BlockUse::kFree});
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
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return static_cast<uint64_t>(streams[a]) < static_cast<uint64_t>(streams[b]);
    });
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

}  // namespace profiler
