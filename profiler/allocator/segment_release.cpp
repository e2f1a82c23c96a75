#include "profiler/allocator/segment_release.h"

#include "profiler/allocator/expandable_segments.h"

#include <algorithm>

namespace profiler {
namespace {

/// release_blocks: plain segments that are one free block, then whole free pages of expandable
/// ones, each in the order (stream, size, address).
void release_half_pool(Heap& heap, uint32_t half_pool) {
    std::vector<BlockHandle> plain;
    std::vector<BlockHandle> expandable;
    for (const uint32_t stream : heap.streams_by_handle()) {
        const FreeIndex& index = heap.half_pools[half_pool].free[stream];
        for (auto place = index.begin(); place != index.end(); place = index.next(place)) {
            const Block& block = heap.blocks[index[place].block];
            if (block.is_expandable()) {
                expandable.push_back(index[place].block);
            } else if (!block.is_split()) {
                plain.push_back(index[place].block);
            }
        }
    }
    for (const BlockHandle block : plain) heap.release_segment(block);
    for (const BlockHandle block : expandable) release_pages(heap, block);
}

/// The unsplit free blocks of the default pool's large half, with their ages in searches.
struct GarbageCandidates {
    std::vector<BlockHandle> blocks;
    int64_t total_age = 0;

    explicit GarbageCandidates(const Heap& heap) {
        for (const uint32_t stream : heap.streams_by_handle()) {
            const FreeIndex& index = heap.half_pools[1].free[stream];
            for (auto place = index.begin(); place != index.end(); place = index.next(place)) {
                if (heap.blocks[index[place].block].is_split()) continue;
                blocks.push_back(index[place].block);
                total_age += age_of(heap, index[place].block);
            }
        }
    }

    static int64_t age_of(const Heap& heap, BlockHandle block) {
        return heap.half_pools[1].num_searches - heap.blocks[block].searches_when_freed;
    }

    /// Releases the old ones; returns their bytes.
    int64_t release_old(Heap& heap) {
        const double average = static_cast<double>(total_age) / static_cast<double>(blocks.size());
        int64_t released_bytes = 0;
        std::erase_if(blocks, [&](BlockHandle handle) {
            const Block& block = heap.blocks[handle];
            const int64_t age = age_of(heap, handle);
            if (block.is_expandable() || static_cast<double>(age) < average) return false;
            released_bytes += block.size_bytes;
            total_age -= age;
            heap.release_segment(handle);
            return true;
        });
        return released_bytes;
    }
};

}  // namespace

void release_cached_blocks(Heap& heap, PendingFrees& pending) {
    if (!heap.is_capturing()) {
        pending.synchronize(heap);
        release_half_pool(heap, 1);
        release_half_pool(heap, 0);
    }
    for (std::size_t i = 1; i < heap.pools.size(); ++i) {
        if (!heap.pools[i].is_freeable()) continue;
        release_half_pool(heap, static_cast<uint32_t>(2 * i));
        release_half_pool(heap, static_cast<uint32_t>(2 * i + 1));
        heap.pools[i].is_erased = heap.pools[i].reserved_bytes == 0;
    }
}

bool release_available_blocks(Heap& heap, const BlockSearch& search) {
    const int64_t max_split_bytes = heap.settings.max_split_bytes;
    if (max_split_bytes == kUnlimitedBytes) return false;
    const FreeIndex& index = heap.half_pools[search.half_pool].free[search.stream];
    const int64_t wanted_bytes = std::max(search.size_bytes, max_split_bytes);
    auto place = index.find(wanted_bytes);
    if (place != index.end() && !heap.blocks[index[place].block].is_expandable()) {
        heap.release_segment(index[place].block);
        return true;
    }
    std::vector<BlockHandle> chosen;
    int64_t chosen_bytes = 0;
    while (chosen_bytes < wanted_bytes && place != index.begin()) {
        place = index.previous(place);
        if (index[place].size_bytes < max_split_bytes) break;
        if (heap.blocks[index[place].block].is_expandable()) continue;
        chosen.push_back(index[place].block);
        chosen_bytes += index[place].size_bytes;
    }
    for (const BlockHandle block : chosen) heap.release_segment(block);
    return chosen_bytes >= wanted_bytes;
}

void collect_garbage(Heap& heap) {
    const auto threshold_bytes =
        static_cast<int64_t>(heap.settings.gc_threshold * static_cast<double>(*heap.limit_bytes));
    int64_t excess_bytes = heap.use.reserved_bytes - threshold_bytes;
    if (excess_bytes <= 0) return;
    GarbageCandidates candidates(heap);
    while (excess_bytes > 0 && !candidates.blocks.empty()) {
        const int64_t released_bytes = candidates.release_old(heap);
        if (released_bytes == 0) return;
        excess_bytes -= released_bytes;
    }
}

}  // namespace profiler
