#include "profiler/allocator/simulator.h"

#include "profiler/allocator/heap.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

namespace profiler {
namespace {

// ---- segments back to the driver --------------------------------------------------------------

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

/// release_cached_blocks: the large half of the default pool, then its small half, then private
/// pools that nobody uses any more, small half first. While a capture is under way, only those
/// private pools.
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

/// release_available_cached_blocks, only with a finite max_split_size: the smallest oversize block
/// that is large enough, else oversize blocks from the largest down until they suffice. True when
/// they do.
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

/// garbage_collect_cached_blocks: releases unsplit segments of the large pool whose age, counted
/// in searches, is at least the average. Passes repeat until reserved memory is below the threshold
/// or a pass released nothing. A pass always runs to its end.
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

// ---- segments of a snapshot -------------------------------------------------------------------

BlockUse use_of(BlockState state) {
    switch (state) {
        case BlockState::kAllocated:
            return BlockUse::kAllocated;
        case BlockState::kPendingFree:
            return BlockUse::kPending;
        case BlockState::kInactive:
            break;
    }
    return BlockUse::kFree;
}

BlockState state_of(BlockUse use) {
    if (use == BlockUse::kAllocated) return BlockState::kAllocated;
    return use == BlockUse::kPending ? BlockState::kPendingFree : BlockState::kInactive;
}

/// Parts of one reservation have these in common.
auto owner_of(const RecordedSegment& segment) {
    return std::tuple(segment.pool, segment.is_small, segment.stream);
}

class SegmentLoader {
public:
    SegmentLoader(Heap& heap, PendingFrees& pending) : heap_(heap), pending_(pending) {}

    void load_plain(const RecordedSegment& segment) {
        segments_.emplace_back();
        load_blocks(segment, -1);
        ++heap_.num_segments;
    }

    /// Mapped ranges by address; the gaps between them and the rest of the reservation are
    /// unmapped.
    void load_reservation(std::span<const RecordedSegment> segments) {
        segments_.emplace_back();
        const RecordedSegment& first = segments.front();
        const int32_t reservation = add_reservation(heap_, first.address, first.is_small);
        int64_t end = first.address;
        BlockHandle last = kNoBlock;
        const auto add_gap = [&](int64_t until) {
            if (until <= end) return;
            Block gap = block_like(first, reservation);
            gap.address = end;
            gap.size_bytes = until - end;
            const BlockHandle added = add_unmapped(heap_, gap);
            segments_.back().push_back(added);
            heap_.blocks.link(last, added, kNoBlock);
            last = added;
            end = until;
        };
        for (const RecordedSegment& segment : segments) {
            add_gap(segment.address);
            if (segment.blocks.empty()) continue;
            last = load_blocks(segment, reservation, last);
            end = segment.address + segment.size_bytes;
        }
        add_gap(first.address + reservation_bytes(heap_, first.is_small));
    }

    /// The free blocks get into their indexes, all blocks their places among those of one size. A
    /// snapshot does not tell the ages of segments and blocks. The driver places each segment below
    /// the ones before. A block that was cut into parts is now the last of them.
    void finish() {
        std::ranges::sort(segments_, std::greater{}, [&](const std::vector<BlockHandle>& blocks) {
            return heap_.blocks[blocks.front()].address;
        });
        for (std::vector<BlockHandle>& blocks : segments_) {
            std::ranges::rotate(blocks, blocks.end() - 1);
            const uint32_t order = heap_.order_of_new_segment();
            for (const BlockHandle handle : blocks) {
                Block& block = heap_.blocks[handle];
                block.order = order;
                if (handle != blocks.front()) block.order = heap_.order_of_part(block);
                if (block.use == BlockUse::kFree) heap_.insert_free(handle);
            }
        }
    }

private:
    Block block_like(const RecordedSegment& segment, int32_t reservation) {
        return {.pool = heap_.half_pool_index(segment.pool, segment.is_small),
                .stream = heap_.stream_index(segment.stream),
                .reservation = reservation};
    }

    /// The blocks of one segment in a row, behind `previous`. Returns the last.
    BlockHandle load_blocks(const RecordedSegment& segment, int32_t reservation,
                            BlockHandle previous = kNoBlock) {
        const Block common = block_like(segment, reservation);
        const bool is_split = segment.blocks.size() > 1;
        for (const RecordedBlock& recorded : segment.blocks) {
            Block block = common;
            block.address = recorded.address;
            block.size_bytes = recorded.size_bytes;
            block.requested_bytes = recorded.requested_bytes;
            block.use = use_of(recorded.state);
            const BlockHandle handle = heap_.blocks.add(block);
            segments_.back().push_back(handle);
            heap_.blocks.link(previous, handle, kNoBlock);
            previous = handle;
            count(handle, is_split && reservation < 0);
        }
        heap_.count_reserved(common.pool, segment.size_bytes);
        return previous;
    }

    void count(BlockHandle handle, bool is_part_of_plain_segment) {
        const Block& block = heap_.blocks[handle];
        if (block.use == BlockUse::kFree) {
            if (is_part_of_plain_segment) heap_.use.inactive_split_bytes += block.size_bytes;
            return;
        }
        heap_.use.active_bytes += block.size_bytes;
        heap_.use.requested_bytes += block.requested_bytes;
        if (block.use == BlockUse::kAllocated) heap_.use.allocated_bytes += block.size_bytes;
        if (block.use == BlockUse::kPending) pending_.hold(handle);
    }

    Heap& heap_;
    PendingFrees& pending_;
    std::vector<std::vector<BlockHandle>> segments_;  // the blocks of each, by address
};

/// From its first block to the next unmapped one.
RecordedSegment segment_from(const Heap& heap, BlockHandle head) {
    const BlockArena& blocks = heap.blocks;
    const Block& first = blocks[head];
    const HalfPool& half = heap.half_pools[first.pool];
    RecordedSegment segment{.address = first.address,
                            .stream = heap.streams[first.stream],
                            .pool = heap.pools[half.pool].id,
                            .is_small = half.is_small,
                            .is_expandable = first.is_expandable()};
    for (BlockHandle at = head; at != kNoBlock && blocks[at].is_mapped(); at = blocks[at].next) {
        const Block& block = blocks[at];
        segment.size_bytes += block.size_bytes;
        segment.blocks.push_back(
            {block.address, block.size_bytes, block.requested_bytes, state_of(block.use)});
    }
    return segment;
}

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
    : heap_(options.settings, limit_of(options, driver), options.tie_order, driver) {}

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
        // torch makes a new block for the front; the rest is the old one.
        Block rest = blocks[handle];
        blocks[handle].order = heap_.order_of_part(rest);
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

/// Fills an empty heap. Expandable segments of one stream and half pool are parts of one
/// reservation, and the first segment begins it. A segment without bytes marks the begin of
/// unmapped address space. Pending frees are held until a recording completes them.
void Simulator::load(std::span<const RecordedSegment> segments) {
    SegmentLoader loader(heap_, pending_);
    std::vector<RecordedSegment> expandable;
    for (const RecordedSegment& segment : segments) {
        if (segment.is_expandable) {
            expandable.push_back(segment);
        } else {
            loader.load_plain(segment);
        }
    }
    std::ranges::sort(expandable, {}, [](const RecordedSegment& segment) {
        return std::tuple(owner_of(segment), segment.address);
    });
    for (auto first = expandable.begin(); first != expandable.end();) {
        const auto last = std::find_if(first, expandable.end(), [&](const RecordedSegment& other) {
            return owner_of(other) != owner_of(*first);
        });
        loader.load_reservation({first, last});
        first = last;
    }
    loader.finish();
    heap_.raise_peaks();
}

std::vector<RecordedSegment> Simulator::segments() const {
    const BlockArena& blocks = heap_.blocks;
    std::vector<RecordedSegment> segments;
    for (BlockHandle handle = 0; handle < blocks.size(); ++handle) {
        const Block& block = blocks[handle];
        if (block.use == BlockUse::kNone || !block.is_mapped()) continue;
        const bool is_head = block.previous == kNoBlock || !blocks[block.previous].is_mapped();
        if (is_head) segments.push_back(segment_from(heap_, handle));
    }
    std::ranges::sort(segments, {}, &RecordedSegment::address);
    return segments;
}

}  // namespace profiler
