#include "profiler/allocator/heap_segments.h"

#include "profiler/allocator/expandable_segments.h"

#include <algorithm>
#include <tuple>

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

class SegmentLoader {
public:
    SegmentLoader(Heap& heap, PendingFrees& pending) : heap_(heap), pending_(pending) {}

    void load_plain(const RecordedSegment& segment) {
        load_blocks(segment, -1);
        ++heap_.num_segments;
    }

    /// Mapped ranges by address; the gaps between them and the rest of the reservation are
    /// unmapped.
    void load_reservation(std::span<const RecordedSegment> segments) {
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
            heap_.insert_free(handle);
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

}  // namespace

void load_segments(Heap& heap, PendingFrees& pending, std::span<const RecordedSegment> segments) {
    SegmentLoader loader(heap, pending);
    std::vector<RecordedSegment> expandable;
    for (const RecordedSegment& segment : segments) {
        if (segment.is_expandable) {
            expandable.push_back(segment);
        } else {
            loader.load_plain(segment);
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
        loader.load_reservation({first, last});
        first = last;
    }
    heap.raise_peaks();
}

std::vector<RecordedSegment> segments_of(const Heap& heap) {
    const BlockArena& blocks = heap.blocks;
    std::vector<RecordedSegment> segments;
    for (BlockHandle handle = 0; handle < blocks.size(); ++handle) {
        const Block& block = blocks[handle];
        if (block.use == BlockUse::kNone || !block.is_mapped()) continue;
        const bool is_head = block.previous == kNoBlock || !blocks[block.previous].is_mapped();
        if (is_head) segments.push_back(segment_from(heap, handle));
    }
    std::sort(
        segments.begin(), segments.end(),
        [](const RecordedSegment& a, const RecordedSegment& b) { return a.address < b.address; });
    return segments;
}

}  // namespace profiler
