#include "profiler/allocator/simulator.h"

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
    : settings_(options.settings), limit_bytes_(limit_of(options, driver)), driver_(&driver) {
    add_pool(0);
}

// ---- allocation -------------------------------------------------------------------------------

std::optional<BlockHandle> Simulator::allocate(const AllocationRequest& request) {
    if (request.size_bytes >= kRefusedBytes) {
        report_out_of_memory(request.size_bytes, request.size_bytes);
        return std::nullopt;
    }
    if (!is_capturing()) process_events();
    Search search = make_search(request);
    BlockHandle block = take_free_block(search);
    if (block == kNoBlock) block = obtain_block(search);
    if (block == kNoBlock) {
        report_out_of_memory(request.size_bytes, search.segment_bytes);
        return std::nullopt;
    }
    return place(block, search, request.size_bytes);
}

std::optional<BlockHandle> Simulator::allocate_new_segment(const AllocationRequest& request) {
    const Search search = make_search(request);
    const BlockHandle block = allocate_segment(search);
    if (block == kNoBlock) return std::nullopt;
    return place(block, search, request.size_bytes);
}

Simulator::Search Simulator::make_search(const AllocationRequest& request) {
    Search search;
    search.size_bytes = round_size(request.size_bytes, settings_);
    search.segment_bytes = segment_bytes_for(search.size_bytes, settings_);
    search.half_pool = static_cast<uint32_t>(2 * pool_index(request.pool)) +
                       (is_small_size(search.size_bytes) ? 0U : 1U);
    search.stream = stream_index(request.stream);
    search.expandable = settings_.expandable_segments;
    return search;
}

/// get_free_block: best fit, which an oversize block may not serve and an oversize request may not
/// waste.
FreeIndex::Place Simulator::find_free_place(const Search& search) const {
    const FreeIndex& index = half_pools_[search.half_pool].free[search.stream];
    FreeIndex::Place place = index.lower_bound(search.size_bytes);
    if (place == index.end()) return place;
    if (blocks_[index[place].block].is_expandable()) {
        if (search.expandable) {
            place = best_expandable(index, place);
        } else {
            // The option was turned off since: only plain blocks serve.
            while (place != index.end() && blocks_[index[place].block].is_expandable()) {
                place = index.next(place);
            }
            if (place == index.end()) return place;
        }
    }
    const int64_t found_bytes = index[place].size_bytes;
    if (search.size_bytes < settings_.max_split_bytes) {
        return found_bytes >= settings_.max_split_bytes ? index.end() : place;
    }
    const bool is_wasteful =
        found_bytes - search.size_bytes >= settings_.max_non_split_rounding_bytes;
    return is_wasteful ? index.end() : place;
}

BlockHandle Simulator::take_free_block(const Search& search) {
    HalfPool& half = half_pools_[search.half_pool];
    if (limit_bytes_ && settings_.gc_threshold > 0) ++half.num_searches;
    const FreeIndex::Place place = find_free_place(search);
    FreeIndex& index = half.free[search.stream];
    if (place == index.end()) return kNoBlock;
    const BlockHandle block = index[place].block;
    index.erase(place);
    return block;
}

BlockHandle Simulator::find_free_block(const AllocationRequest& request) {
    const Search search = make_search(request);
    const FreeIndex& index = half_pools_[search.half_pool].free[search.stream];
    const FreeIndex::Place place = find_free_place(search);
    return place == index.end() ? kNoBlock : index[place].block;
}

/// Nothing free fits: collect garbage, ask the driver, give back what is cached and ask again.
BlockHandle Simulator::obtain_block(Search& search) {
    if (limit_bytes_ && settings_.gc_threshold > 0) collect_garbage();
    BlockHandle block = allocate_segment(search);
    if (block == kNoBlock) block = take_from_overflow_pools(search);
    if (block == kNoBlock && release_available_blocks(search)) block = allocate_segment(search);
    if (block == kNoBlock && !is_capturing()) {
        release_cached_blocks();
        ++num_retries_;
        // The index is not searched again, although the release may have merged what now fits.
        block = allocate_segment(search);
    }
    return block;
}

/// try_mempool_fallback: what lies free in pools that were opened for this.
BlockHandle Simulator::take_from_overflow_pools(Search& search) {
    if (half_pools_[search.half_pool].pool != 0) return kNoBlock;
    for (std::size_t i = 1; i < pools_.size(); ++i) {
        if (!pools_[i].use_on_oom || pools_[i].is_erased) continue;
        Search there = search;
        there.half_pool = static_cast<uint32_t>(2 * i) + search.half_pool % 2;
        there.expandable = false;
        const BlockHandle block = take_free_block(there);
        if (block == kNoBlock) continue;
        search = there;
        return block;
    }
    return kNoBlock;
}

bool Simulator::is_over_limit(int64_t more_bytes) const {
    return limit_bytes_ && use_.reserved_bytes + more_bytes > *limit_bytes_;
}

/// alloc_block. The limit is compared with the size of a plain segment, also where an expandable
/// one would grow by less.
BlockHandle Simulator::allocate_segment(const Search& search) {
    if (is_over_limit(search.segment_bytes)) return kNoBlock;
    if (search.expandable) return allocate_expandable(search);
    const auto address = driver_->allocate_segment(search.segment_bytes);
    if (!address) return kNoBlock;
    const BlockHandle block = blocks_.add({.address = *address,
                                           .size_bytes = search.segment_bytes,
                                           .pool = search.half_pool,
                                           .stream = search.stream,
                                           .use = BlockUse::kFree});
    ++num_segments_;
    use_.reserved_bytes += search.segment_bytes;
    pools_[half_pools_[search.half_pool].pool].reserved_bytes += search.segment_bytes;
    raise_peaks();
    log(RecordedAction::kSegmentAlloc, blocks_[block], search.segment_bytes);
    return block;
}

bool Simulator::should_split(const Block& block, const Search& search) const {
    const HalfPool& half = half_pools_[block.pool];
    if (pools_[half.pool].no_split) return false;
    const int64_t rest_bytes = block.size_bytes - search.size_bytes;
    if (half.is_small || search.expandable) return rest_bytes >= kMinBlockBytes;
    return search.size_bytes < settings_.max_split_bytes && rest_bytes > kSmallRequestBytes;
}

/// alloc_found_block: the front of the block serves the request, the rest stays free.
BlockHandle Simulator::place(BlockHandle handle, const Search& search, int64_t requested_bytes) {
    const bool was_split = blocks_[handle].is_split();
    const bool is_expandable = blocks_[handle].is_expandable();
    if (should_split(blocks_[handle], search)) {
        Block rest = blocks_[handle];
        rest.address += search.size_bytes;
        rest.size_bytes -= search.size_bytes;
        rest.use = BlockUse::kFree;
        const BlockHandle after = blocks_[handle].next;
        const BlockHandle rest_handle = blocks_.add(rest);
        blocks_[handle].size_bytes = search.size_bytes;
        blocks_.link(handle, rest_handle, after);
        insert_free(rest_handle);
        if (!is_expandable) {
            use_.inactive_split_bytes += was_split ? -search.size_bytes : rest.size_bytes;
        }
    } else if (was_split && !is_expandable) {
        use_.inactive_split_bytes -= blocks_[handle].size_bytes;
    }
    Block& block = blocks_[handle];
    block.use = BlockUse::kAllocated;
    block.requested_bytes = requested_bytes;
    use_.allocated_bytes += block.size_bytes;
    use_.active_bytes += block.size_bytes;
    use_.requested_bytes += requested_bytes;
    raise_peaks();
    return handle;
}

// ---- free -------------------------------------------------------------------------------------

void Simulator::free(BlockHandle block) {
    begin_free(block);
    if (!blocks_[block].has_stream_uses) {
        finish_free(block);
    } else if (is_capturing()) {
        deferred_.push_back(block);
    } else {
        insert_events(block);
    }
}

void Simulator::begin_free(BlockHandle handle) {
    Block& block = blocks_[handle];
    block.use = BlockUse::kPending;
    use_.allocated_bytes -= block.size_bytes;
}

/// free_block: merges with free neighbours and returns to the index.
void Simulator::finish_free(BlockHandle handle) {
    Block& block = blocks_[handle];
    use_.active_bytes -= block.size_bytes;
    use_.requested_bytes -= block.requested_bytes;
    block.use = BlockUse::kFree;
    block.requested_bytes = 0;
    int64_t absorbed_bytes = absorb(handle, block.previous);
    absorbed_bytes += absorb(handle, block.next);
    insert_free(handle);
    if (!block.is_expandable()) {
        use_.inactive_split_bytes += (block.is_split() ? block.size_bytes : 0) - absorbed_bytes;
        peak_.inactive_split_bytes =
            std::max(peak_.inactive_split_bytes, use_.inactive_split_bytes);
    }
}

void Simulator::request_free(BlockHandle block) {
    begin_free(block);
    held_.push_back(block);
}

void Simulator::complete_free(BlockHandle block) {
    // Most are completed at once: looked for from the back.
    const auto found = std::find(held_.rbegin(), held_.rend(), block);
    if (found != held_.rend()) held_.erase(std::next(found).base());
    finish_free(block);
}

/// try_merge_blocks: `handle` takes over a neighbour of its kind; returns the bytes it gained.
int64_t Simulator::absorb(BlockHandle handle, BlockHandle neighbour) {
    if (neighbour == kNoBlock) return 0;
    Block& block = blocks_[handle];
    const Block& other = blocks_[neighbour];
    if (other.use != block.use) return 0;
    if (other.use == BlockUse::kFree) {
        erase_free(other);
    } else {
        half_pools_[other.pool].unmapped[other.stream].erase(other.address);
    }
    if (block.previous == neighbour) {
        block.address = other.address;
        blocks_.link(other.previous, handle, block.next);
    } else {
        blocks_.link(block.previous, handle, other.next);
    }
    const int64_t gained_bytes = other.size_bytes;
    block.size_bytes += gained_bytes;
    blocks_.remove(neighbour);
    return gained_bytes;
}

void Simulator::insert_free(BlockHandle handle) {
    Block& block = blocks_[handle];
    block.searches_when_freed = half_pools_[block.pool].num_searches;
    free_index(block).insert({block.size_bytes, block.address, handle});
}

void Simulator::erase_free(const Block& block) {
    free_index(block).erase(block.size_bytes, block.address);
}

void Simulator::grow_into_next(BlockHandle handle, int64_t bytes) {
    Block& block = blocks_[handle];
    const BlockHandle next = block.next;
    erase_free(blocks_[next]);
    block.size_bytes += bytes;
    use_.active_bytes += bytes;
    if (block.use == BlockUse::kAllocated) use_.allocated_bytes += bytes;
    use_.inactive_split_bytes -= bytes;
    blocks_[next].address += bytes;
    blocks_[next].size_bytes -= bytes;
    if (blocks_[next].size_bytes > 0) {
        insert_free(next);
    } else {
        blocks_.link(block.previous, handle, blocks_[next].next);
        blocks_.remove(next);
    }
    raise_peaks();
}

// ---- bookkeeping ------------------------------------------------------------------------------

void Simulator::report_out_of_memory(int64_t requested_bytes, int64_t asked_bytes) {
    int64_t free_bytes = driver_->free_bytes();
    if (limit_bytes_) free_bytes = std::min(free_bytes, *limit_bytes_ - use_.reserved_bytes);
    out_of_memory_ = {requested_bytes, asked_bytes, free_bytes, use_};
}

void Simulator::raise_peaks() {
    const auto raise = [](int64_t& peak, int64_t now) { peak = std::max(peak, now); };
    raise(peak_.allocated_bytes, use_.allocated_bytes);
    raise(peak_.active_bytes, use_.active_bytes);
    raise(peak_.requested_bytes, use_.requested_bytes);
    raise(peak_.reserved_bytes, use_.reserved_bytes);
    raise(peak_.inactive_split_bytes, use_.inactive_split_bytes);
}

void Simulator::log(RecordedAction action, const Block& block, int64_t size_bytes) {
    events_.push_back({.action = action,
                       .address = block.address,
                       .size_bytes = size_bytes,
                       .stream = streams_[block.stream],
                       .pool = pools_[half_pools_[block.pool].pool].id});
}

uint32_t Simulator::stream_index(int64_t stream) {
    // Programs use a handful of streams.
    const auto found = std::find(streams_.begin(), streams_.end(), stream);
    if (found != streams_.end()) return static_cast<uint32_t>(found - streams_.begin());
    streams_.push_back(stream);
    stream_events_.emplace_back();
    for (HalfPool& half : half_pools_) {
        half.free.resize(streams_.size());
        half.unmapped.resize(streams_.size());
    }
    return static_cast<uint32_t>(streams_.size() - 1);
}

std::size_t Simulator::pool_index(int64_t pool) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
        if (pools_[i].id == pool && !pools_[i].is_erased) return i;
    }
    return add_pool(pool);
}

std::size_t Simulator::add_pool(int64_t id) {
    const std::size_t index = pools_.size();
    pools_.push_back({.id = id});
    for (const bool is_small : {true, false}) {
        HalfPool half;
        half.pool = index;
        half.is_small = is_small;
        half.free.resize(streams_.size());
        half.unmapped.resize(streams_.size());
        half_pools_.push_back(std::move(half));
    }
    return index;
}

/// The order in which torch walks blocks of several streams: by the handle's value.
std::vector<uint32_t> Simulator::streams_by_value() const {
    std::vector<uint32_t> order(streams_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return static_cast<uint64_t>(streams_[a]) < static_cast<uint64_t>(streams_[b]);
    });
    return order;
}

}  // namespace profiler
