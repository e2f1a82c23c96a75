#include "profiler/allocator/simulator.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>

/// How segments go back to the driver: all that are cached, only as many as needed, or the oldest.
namespace profiler {

void Simulator::empty_cache() { release_cached_blocks(); }

/// release_cached_blocks: default pool large then small, private pools that nobody uses any more
/// small then large. While a pool is being allocated to, only those private pools.
void Simulator::release_cached_blocks() {
    if (!is_capturing()) {
        synchronize_events();
        release_half_pool(1);
        release_half_pool(0);
    }
    for (std::size_t i = 1; i < pools_.size(); ++i) {
        if (!pools_[i].is_freeable()) continue;
        release_half_pool(static_cast<uint32_t>(2 * i));
        release_half_pool(static_cast<uint32_t>(2 * i + 1));
        pools_[i].is_erased = pools_[i].reserved_bytes == 0;
    }
}

/// release_blocks: plain segments that are one free block; then whole free pages of expandable
/// ones. In the order (stream, size, address).
void Simulator::release_half_pool(uint32_t half_pool) {
    std::vector<BlockHandle> plain;
    std::vector<BlockHandle> expandable;
    for (const uint32_t stream : streams_by_value()) {
        const FreeIndex& index = half_pools_[half_pool].free[stream];
        for (auto place = index.begin(); place != index.end(); place = index.next(place)) {
            const Block& block = blocks_[index[place].block];
            if (block.is_expandable()) {
                expandable.push_back(index[place].block);
            } else if (!block.is_split()) {
                plain.push_back(index[place].block);
            }
        }
    }
    for (const BlockHandle block : plain) release_segment(block);
    for (const BlockHandle block : expandable) {
        unmap_block(block);
        release_reservation(block);
    }
}

void Simulator::release_segment(BlockHandle handle) {
    const Block& block = blocks_[handle];
    log(RecordedAction::kSegmentFree, block, block.size_bytes);
    driver_->free_segment(block.address, block.size_bytes);
    --num_segments_;
    use_.reserved_bytes -= block.size_bytes;
    pools_[half_pools_[block.pool].pool].reserved_bytes -= block.size_bytes;
    erase_free(block);
    blocks_.remove(handle);
}

bool Simulator::free_segment(int64_t address) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const Block& block = blocks_[static_cast<BlockHandle>(i)];
        if (block.use != BlockUse::kFree || block.address != address) continue;
        if (block.is_split() || block.is_expandable()) return false;
        release_segment(static_cast<BlockHandle>(i));
        return true;
    }
    return false;
}

/// release_available_cached_blocks, with a finite max_split_size only: the smallest oversize block
/// that is large enough, else oversize blocks from the largest down until they are.
bool Simulator::release_available_blocks(const Search& search) {
    if (settings_.max_split_bytes == kUnlimitedBytes) return false;
    const FreeIndex& index = half_pools_[search.half_pool].free[search.stream];
    const int64_t wanted_bytes = std::max(search.size_bytes, settings_.max_split_bytes);
    auto place = index.lower_bound(wanted_bytes);
    if (place != index.end() && !blocks_[index[place].block].is_expandable()) {
        release_segment(index[place].block);
        return true;
    }
    std::vector<BlockHandle> chosen;
    int64_t chosen_bytes = 0;
    while (chosen_bytes < wanted_bytes && place != index.begin()) {
        place = index.previous(place);
        if (index[place].size_bytes < settings_.max_split_bytes) break;
        if (blocks_[index[place].block].is_expandable()) continue;
        chosen.push_back(index[place].block);
        chosen_bytes += index[place].size_bytes;
    }
    for (const BlockHandle block : chosen) release_segment(block);
    return chosen_bytes >= wanted_bytes;
}

/// garbage_collect_cached_blocks: unsplit segments of the large pool whose age, counted in
/// searches, is at least the average, again and again until reserved memory is back under the
/// threshold or none is left. A pass is not stopped half-way.
void Simulator::collect_garbage() {
    const auto threshold_bytes =
        static_cast<int64_t>(settings_.gc_threshold * static_cast<double>(*limit_bytes_));
    if (use_.reserved_bytes <= threshold_bytes) return;
    const int64_t target_bytes = use_.reserved_bytes - threshold_bytes;
    const HalfPool& half = half_pools_[1];
    const auto age_of = [&](const Block& block) {
        return half.num_searches - block.searches_when_freed;
    };

    std::vector<BlockHandle> candidates;
    int64_t total_age = 0;
    for (const uint32_t stream : streams_by_value()) {
        const FreeIndex& index = half.free[stream];
        for (auto place = index.begin(); place != index.end(); place = index.next(place)) {
            const Block& block = blocks_[index[place].block];
            if (block.is_split()) continue;
            candidates.push_back(index[place].block);
            total_age += age_of(block);
        }
    }
    int64_t reclaimed_bytes = 0;
    bool has_freed = true;
    while (reclaimed_bytes < target_bytes && has_freed && !candidates.empty()) {
        const double average =
            static_cast<double>(total_age) / static_cast<double>(candidates.size());
        std::vector<BlockHandle> kept;
        for (const BlockHandle handle : candidates) {
            const Block& block = blocks_[handle];
            if (block.is_expandable() || static_cast<double>(age_of(block)) < average) {
                kept.push_back(handle);
                continue;
            }
            reclaimed_bytes += block.size_bytes;
            total_age -= age_of(block);
            release_segment(handle);
        }
        has_freed = kept.size() < candidates.size();
        candidates = std::move(kept);
    }
}

}  // namespace profiler
