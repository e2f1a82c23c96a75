#include "profiler/allocator/simulator.h"

#include "profiler/allocator/expandable_segments.h"
#include "profiler/allocator/heap_segments.h"
#include "profiler/allocator/segment_release.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>

namespace profiler {
namespace {

/// torch refuses requests from one EiB on without trying (NativeCachingAllocator::allocate).
constexpr int64_t kRefusedBytes = int64_t{1} << 60;

std::optional<int64_t> limit_of(const SimulatorOptions& options, const Driver& driver) {
    const double fraction = options.settings.memory_fraction;
    if (fraction >= 1) return options.memory_limit_bytes;
    const int64_t whole = options.memory_limit_bytes.value_or(driver.total_bytes());
    return static_cast<int64_t>(fraction * static_cast<double>(whole));
}

}  // namespace

Simulator::Simulator(const SimulatorOptions& options, Driver& driver)
    : heap_(options.settings, limit_of(options, driver), driver) {}

// ---- allocation -------------------------------------------------------------------------------

std::optional<BlockHandle> Simulator::allocate(const AllocationRequest& request) {
    if (request.size_bytes >= kRefusedBytes) {
        report_out_of_memory(request.size_bytes, request.size_bytes);
        return std::nullopt;
    }
    if (!heap_.is_capturing()) pending_.process(heap_);
    BlockSearch search = make_search(request);
    BlockHandle block = take_free_block(search);
    if (block == kNoBlock) block = obtain_block(search);
    if (block == kNoBlock) {
        report_out_of_memory(request.size_bytes,
                             segment_bytes_for(search.size_bytes, heap_.settings));
        return std::nullopt;
    }
    return place(block, search, request.size_bytes);
}

std::optional<BlockHandle> Simulator::allocate_new_segment(const AllocationRequest& request) {
    const BlockSearch search = make_search(request);
    const BlockHandle block = allocate_segment(search);
    if (block == kNoBlock) return std::nullopt;
    return place(block, search, request.size_bytes);
}

inline BlockSearch Simulator::make_search(const AllocationRequest& request) {
    const int64_t size_bytes = round_size(request.size_bytes, heap_.settings);
    return {.size_bytes = size_bytes,
            .half_pool = heap_.half_pool_index(request.pool, is_small_size(size_bytes)),
            .stream = heap_.stream_index(request.stream),
            .expandable = heap_.settings.expandable_segments};
}

/// get_free_block: best fit, except that an oversize block serves no smaller request, and that an
/// oversize request wastes no larger block.
inline FreeIndex::Place Simulator::find_free_place(const BlockSearch& search) const {
    const FreeIndex& index = heap_.half_pools[search.half_pool].free[search.stream];
    FreeIndex::Place place = index.find(search.size_bytes);
    if (place == index.end()) return place;
    const auto is_expandable = [&] { return heap_.blocks[index[place].block].is_expandable(); };
    if (is_expandable()) {
        if (search.expandable) {
            place = best_expandable_place(heap_, index, place);
        } else {
            // The option was turned off since: only plain blocks serve.
            while (place != index.end() && is_expandable()) place = index.next(place);
            if (place == index.end()) return place;
        }
    }
    const AllocatorSettings& settings = heap_.settings;
    const int64_t found_bytes = index[place].size_bytes;
    if (search.size_bytes < settings.max_split_bytes) {
        return found_bytes >= settings.max_split_bytes ? index.end() : place;
    }
    const bool is_wasteful =
        found_bytes - search.size_bytes >= settings.max_non_split_rounding_bytes;
    return is_wasteful ? index.end() : place;
}

inline BlockHandle Simulator::take_free_block(const BlockSearch& search) {
    HalfPool& half = heap_.half_pools[search.half_pool];
    if (collects_garbage()) ++half.num_searches;
    const FreeIndex::Place place = find_free_place(search);
    FreeIndex& index = half.free[search.stream];
    if (place == index.end()) return kNoBlock;
    const BlockHandle block = index[place].block;
    index.erase(place);
    return block;
}

BlockHandle Simulator::find_free_block(const AllocationRequest& request) {
    const BlockSearch search = make_search(request);
    const FreeIndex& index = heap_.half_pools[search.half_pool].free[search.stream];
    const FreeIndex::Place place = find_free_place(search);
    return place == index.end() ? kNoBlock : index[place].block;
}

/// Nothing free fits: collect garbage, ask the driver, release cached blocks and ask again.
BlockHandle Simulator::obtain_block(BlockSearch& search) {
    if (collects_garbage()) collect_garbage(heap_);
    BlockHandle block = allocate_segment(search);
    if (block == kNoBlock) block = take_from_overflow_pools(search);
    if (block == kNoBlock && release_available_blocks(heap_, search)) {
        block = allocate_segment(search);
    }
    if (block == kNoBlock && !heap_.is_capturing()) {
        release_cached_blocks(heap_, pending_);
        ++num_retries_;
        // The index is not searched again, although the release may have merged blocks that fit.
        block = allocate_segment(search);
    }
    return block;
}

/// try_mempool_fallback: free blocks of pools with use_on_oom.
BlockHandle Simulator::take_from_overflow_pools(BlockSearch& search) {
    if (heap_.half_pools[search.half_pool].pool != 0) return kNoBlock;
    for (std::size_t i = 1; i < heap_.pools.size(); ++i) {
        if (!heap_.pools[i].use_on_oom || heap_.pools[i].is_erased) continue;
        BlockSearch there = search;
        there.half_pool = static_cast<uint32_t>(2 * i) + search.half_pool % 2;
        there.expandable = false;
        const BlockHandle block = take_free_block(there);
        if (block == kNoBlock) continue;
        search = there;
        return block;
    }
    return kNoBlock;
}

/// alloc_block. The limit is compared with the size of a plain segment, even where an expandable
/// one would grow by less.
BlockHandle Simulator::allocate_segment(const BlockSearch& search) {
    const int64_t segment_bytes = segment_bytes_for(search.size_bytes, heap_.settings);
    if (heap_.is_over_limit(segment_bytes)) return kNoBlock;
    if (search.expandable) return allocate_expandable(heap_, search);
    return heap_.add_segment(search, segment_bytes);
}

inline bool Simulator::should_split(const Block& block, const BlockSearch& search) const {
    const HalfPool& half = heap_.half_pools[block.pool];
    if (heap_.pools[half.pool].no_split) return false;
    const int64_t rest_bytes = block.size_bytes - search.size_bytes;
    if (half.is_small || search.expandable) return rest_bytes >= kMinBlockBytes;
    return search.size_bytes < heap_.settings.max_split_bytes && rest_bytes > kSmallRequestBytes;
}

/// alloc_found_block: the front of the block serves the request, the rest stays free.
BlockHandle Simulator::place(BlockHandle handle, const BlockSearch& search,
                             int64_t requested_bytes) {
    BlockArena& blocks = heap_.blocks;
    MemoryUse& use = heap_.use;
    const bool was_split = blocks[handle].is_split();
    const bool is_expandable = blocks[handle].is_expandable();
    if (should_split(blocks[handle], search)) {
        Block rest = blocks[handle];
        rest.address += search.size_bytes;
        rest.size_bytes -= search.size_bytes;
        rest.use = BlockUse::kFree;
        const BlockHandle after = blocks[handle].next;
        const BlockHandle rest_handle = blocks.add(rest);
        blocks[handle].size_bytes = search.size_bytes;
        blocks.link(handle, rest_handle, after);
        heap_.insert_free(rest_handle);
        if (!is_expandable) {
            use.inactive_split_bytes += was_split ? -search.size_bytes : rest.size_bytes;
        }
    } else if (was_split && !is_expandable) {
        use.inactive_split_bytes -= blocks[handle].size_bytes;
    }
    Block& block = blocks[handle];
    block.use = BlockUse::kAllocated;
    block.requested_bytes = requested_bytes;
    use.allocated_bytes += block.size_bytes;
    use.active_bytes += block.size_bytes;
    use.requested_bytes += requested_bytes;
    heap_.raise_peaks();
    return handle;
}

void Simulator::report_out_of_memory(int64_t requested_bytes, int64_t asked_bytes) {
    int64_t free_bytes = heap_.driver->free_bytes();
    if (heap_.limit_bytes) {
        free_bytes = std::min(free_bytes, *heap_.limit_bytes - heap_.use.reserved_bytes);
    }
    out_of_memory_ = {requested_bytes, asked_bytes, free_bytes, heap_.use};
}

// ---- free -------------------------------------------------------------------------------------

void Simulator::free(BlockHandle block) {
    begin_free(block);
    if (heap_.blocks[block].has_stream_uses) {
        pending_.free(heap_, block);
    } else {
        heap_.finish_free(block);
    }
}

inline void Simulator::begin_free(BlockHandle handle) {
    Block& block = heap_.blocks[handle];
    block.use = BlockUse::kPending;
    heap_.use.allocated_bytes -= block.size_bytes;
}

void Simulator::request_free(BlockHandle block) {
    begin_free(block);
    pending_.hold(block);
}

void Simulator::complete_free(BlockHandle block) {
    pending_.stop_holding(block);
    heap_.finish_free(block);
}

void Simulator::empty_cache() { release_cached_blocks(heap_, pending_); }

// ---- pools ------------------------------------------------------------------------------------

void Simulator::begin_pool(int64_t pool) {
    const std::size_t num_before = heap_.pools.size();
    const std::size_t index = heap_.pool_index(pool);
    const bool is_new = heap_.pools.size() > num_before;
    if (!is_new) ++heap_.pools[index].use_count;
    heap_.open_pools.push_back(pool);
}

// ---- recordings -------------------------------------------------------------------------------

bool Simulator::free_segment(int64_t address) {
    for (BlockHandle handle = 0; handle < heap_.blocks.size(); ++handle) {
        const Block& block = heap_.blocks[handle];
        if (block.use != BlockUse::kFree || block.address != address) continue;
        if (block.is_split() || block.is_expandable()) return false;
        heap_.release_segment(handle);
        return true;
    }
    return false;
}

void Simulator::grow_into_next(BlockHandle handle, int64_t bytes) {
    BlockArena& blocks = heap_.blocks;
    MemoryUse& use = heap_.use;
    Block& block = blocks[handle];
    const BlockHandle next = block.next;
    heap_.erase_free(blocks[next]);
    block.size_bytes += bytes;
    use.active_bytes += bytes;
    if (block.use == BlockUse::kAllocated) use.allocated_bytes += bytes;
    use.inactive_split_bytes -= bytes;
    blocks[next].address += bytes;
    blocks[next].size_bytes -= bytes;
    if (blocks[next].size_bytes > 0) {
        heap_.insert_free(next);
    } else {
        blocks.link(block.previous, handle, blocks[next].next);
        blocks.remove(next);
    }
    heap_.raise_peaks();
}

void Simulator::load(std::span<const RecordedSegment> segments) {
    load_segments(heap_, pending_, segments);
}

std::vector<RecordedSegment> Simulator::segments() const { return segments_of(heap_); }

}  // namespace profiler
