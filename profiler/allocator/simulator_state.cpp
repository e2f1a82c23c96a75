#include "profiler/allocator/simulator.h"
#include "profiler/allocator/sizes.h"

#include <algorithm>
#include <tuple>

/// The allocator's state as the segments of a snapshot, in both directions.
namespace profiler {
namespace {

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

}  // namespace

void Simulator::load(std::span<const RecordedSegment> segments) {
    std::vector<RecordedSegment> expandable;
    for (const RecordedSegment& segment : segments) {
        if (segment.is_expandable) {
            expandable.push_back(segment);
        } else {
            load_segment(segment, -1);
            ++num_segments_;
        }
    }
    std::sort(expandable.begin(), expandable.end(),
              [](const RecordedSegment& a, const RecordedSegment& b) {
                  return std::tuple(owner_of(a), a.address) < std::tuple(owner_of(b), b.address);
              });
    for (auto first = expandable.begin(); first != expandable.end();) {
        const auto last = std::find_if(first, expandable.end(), [&](const RecordedSegment& other) {
            return owner_of(other) != owner_of(*first);
        });
        load_reservation({first, last});
        first = last;
    }
    raise_peaks();
}

/// Blocks of one segment in a row; returns the last.
BlockHandle Simulator::load_segment(const RecordedSegment& segment, int32_t reservation) {
    const std::size_t pool = pool_index(segment.pool);
    const auto half_pool = static_cast<uint32_t>(2 * pool) + (segment.is_small ? 0U : 1U);
    const uint32_t stream = stream_index(segment.stream);
    const bool is_split = segment.blocks.size() > 1;
    BlockHandle previous = kNoBlock;
    for (const RecordedBlock& recorded : segment.blocks) {
        const BlockHandle handle = blocks_.add({.address = recorded.address,
                                                .size_bytes = recorded.size_bytes,
                                                .requested_bytes = recorded.requested_bytes,
                                                .pool = half_pool,
                                                .stream = stream,
                                                .reservation = reservation,
                                                .use = use_of(recorded.state)});
        blocks_.link(previous, handle, kNoBlock);
        previous = handle;
        if (recorded.state == BlockState::kInactive) {
            insert_free(handle);
            if (is_split && reservation < 0) use_.inactive_split_bytes += recorded.size_bytes;
            continue;
        }
        use_.active_bytes += recorded.size_bytes;
        use_.requested_bytes += recorded.requested_bytes;
        if (recorded.state == BlockState::kAllocated) use_.allocated_bytes += recorded.size_bytes;
        if (recorded.state == BlockState::kPendingFree) held_.push_back(handle);
    }
    use_.reserved_bytes += segment.size_bytes;
    pools_[pool].reserved_bytes += segment.size_bytes;
    return previous;
}

/// Mapped ranges by address, the gaps between them and the rest of the reservation unmapped.
void Simulator::load_reservation(std::span<const RecordedSegment> segments) {
    const RecordedSegment& first = segments.front();
    const int64_t page_bytes = page_bytes_of(first.is_small, settings_);
    const int64_t size_bytes =
        round_up(driver_->total_bytes() + driver_->total_bytes() / 8, page_bytes);
    const auto reservation = static_cast<int32_t>(reservations_.size());
    reservations_.push_back({first.address, size_bytes, page_bytes});
    ++num_segments_;
    int64_t end = first.address;
    BlockHandle last = kNoBlock;
    for (const RecordedSegment& segment : segments) {
        if (segment.address > end) {
            const BlockHandle gap = add_unmapped(segment, reservation, end, segment.address - end);
            blocks_.link(last, gap, kNoBlock);
            last = gap;
        }
        if (segment.blocks.empty()) continue;
        const auto before = static_cast<BlockHandle>(blocks_.size());
        const BlockHandle segment_last = load_segment(segment, reservation);
        blocks_.link(last, before, blocks_[before].next);
        last = segment_last;
        end = segment.address + segment.size_bytes;
    }
    const int64_t rest_bytes = first.address + size_bytes - end;
    if (rest_bytes <= 0) return;
    blocks_.link(last, add_unmapped(first, reservation, end, rest_bytes), kNoBlock);
}

BlockHandle Simulator::add_unmapped(const RecordedSegment& like, int32_t reservation,
                                    int64_t address, int64_t size_bytes) {
    const auto half_pool =
        static_cast<uint32_t>(2 * pool_index(like.pool)) + (like.is_small ? 0U : 1U);
    const uint32_t stream = stream_index(like.stream);
    const BlockHandle handle = blocks_.add({.address = address,
                                            .size_bytes = size_bytes,
                                            .pool = half_pool,
                                            .stream = stream,
                                            .reservation = reservation,
                                            .use = BlockUse::kUnmapped});
    half_pools_[half_pool].unmapped[stream].emplace(address, handle);
    return handle;
}

std::vector<RecordedSegment> Simulator::segments() const {
    std::vector<RecordedSegment> segments;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const auto handle = static_cast<BlockHandle>(i);
        const Block& block = blocks_[handle];
        if (block.use == BlockUse::kNone || !block.is_mapped()) continue;
        const bool is_head = block.previous == kNoBlock || !blocks_[block.previous].is_mapped();
        if (is_head) segments.push_back(segment_from(handle));
    }
    std::sort(
        segments.begin(), segments.end(),
        [](const RecordedSegment& a, const RecordedSegment& b) { return a.address < b.address; });
    return segments;
}

/// From its first block to the next unmapped one.
RecordedSegment Simulator::segment_from(BlockHandle head) const {
    const Block& first = blocks_[head];
    const HalfPool& half = half_pools_[first.pool];
    RecordedSegment segment{.address = first.address,
                            .stream = streams_[first.stream],
                            .pool = pools_[half.pool].id,
                            .is_small = half.is_small,
                            .is_expandable = first.is_expandable()};
    for (BlockHandle at = head; at != kNoBlock && blocks_[at].is_mapped(); at = blocks_[at].next) {
        const Block& block = blocks_[at];
        segment.size_bytes += block.size_bytes;
        segment.blocks.push_back(
            {block.address, block.size_bytes, block.requested_bytes, state_of(block.use)});
    }
    return segment;
}

}  // namespace profiler
