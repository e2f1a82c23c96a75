#include "profiler/allocator/recorded_segments.h"

#include "profiler/allocator/sizes.h"
#include "profiler/trace/mapped_segments.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

bool takes_memory(AllocatorAction action) {
    return action == AllocatorAction::kSegmentAlloc || action == AllocatorAction::kSegmentMap;
}

bool gives_memory_back(AllocatorAction action) {
    return action == AllocatorAction::kSegmentFree || action == AllocatorAction::kSegmentUnmap;
}

class SegmentsAt {
public:
    SegmentsAt(const Trace& trace, Id<Device> device, int64_t event)
        : trace_(trace), device_(device), event_(event) {}

    SegmentsOfTrace make() {
        hold_segments();
        read_blocks();
        held_.for_each([&](int64_t address, int64_t size_bytes, Id<AllocatorEvent> row) {
            add_segment(address, size_bytes, row);
        });
        auto next = live_.cbegin();
        for (RecordedSegment& segment : made_.segments) add_blocks(segment, next);
        return std::move(made_);
    }

private:
    using Block = std::pair<int64_t, Id<Allocation>>;  // its address first

    void hold_segments() {
        const auto& rows = trace_.allocator_events;
        std::vector<Id<AllocatorEvent>> before;
        for (const Id<AllocatorEvent> row : rows.ids()) {
            const bool is_here = rows.get<&AllocatorEvent::device>(row) == device_;
            if (is_here && rows.get<&AllocatorEvent::event>(row) < event_) before.push_back(row);
        }
        std::ranges::stable_sort(before, {}, [&](Id<AllocatorEvent> row) {
            return rows.get<&AllocatorEvent::event>(row);
        });
        for (const Id<AllocatorEvent> id : before) {
            const AllocatorEvent row = rows[id];
            if (row.address < 0) continue;  // a profiler trace knows only their sum
            if (takes_memory(row.action)) held_.add(row.address, row.size_bytes, id);
            if (gives_memory_back(row.action)) held_.remove(row.address, row.size_bytes);
        }
    }

    void read_blocks() {
        const auto& rows = trace_.allocations;
        const auto devices = rows.column<&Allocation::device>();
        const auto addresses = rows.column<&Allocation::address>();
        const auto segments = rows.column<&Allocation::segment>();
        const auto requested = rows.column<&Allocation::requested_bytes>();
        const auto allocs = rows.column<&Allocation::alloc_event>();
        const auto completes = rows.column<&Allocation::free_completed_event>();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (devices[i] != device_) continue;
            if (segments[i].valid()) {
                int64_t& largest = largest_request_[segments[i].value];
                largest = std::max(largest, requested[i]);
            }
            const bool is_freed = completes[i] >= 0 && completes[i] < event_;
            if (allocs[i] < event_ && !is_freed) live_.emplace_back(addresses[i], i);
        }
        std::ranges::sort(live_);
    }

    /// Blocks of up to 1 MiB lie in segments of their own.
    bool is_small(Id<AllocatorEvent> segment, int64_t size_bytes) const {
        const auto largest = largest_request_.find(segment.value);
        if (largest == largest_request_.end()) return size_bytes <= kSmallSegmentBytes;
        return is_small_size(largest->second);
    }

    void add_segment(int64_t address, int64_t size_bytes, Id<AllocatorEvent> id) {
        const AllocatorEvent row = trace_.allocator_events[id];
        RecordedSegment segment{
            .address = address,
            .size_bytes = size_bytes,
            .stream = row.stream.valid() ? trace_.streams.get<&Stream::handle>(row.stream) : 0,
            .pool = row.pool,
            .is_small = is_small(id, size_bytes),
            .is_expandable = row.action == AllocatorAction::kSegmentMap};
        if (!made_.segments.empty() && segment.is_expandable) {
            RecordedSegment& last = made_.segments.back();
            const bool continues = last.is_expandable &&
                                   last.address + last.size_bytes == address &&
                                   last.stream == segment.stream && last.pool == segment.pool;
            if (continues) {
                last.size_bytes += size_bytes;
                last.is_small &= segment.is_small;
                return;
            }
        }
        made_.segments.push_back(std::move(segment));
    }

    /// The blocks in use, with what is free between them.
    void add_blocks(RecordedSegment& segment, std::vector<Block>::const_iterator& next) {
        const int64_t end = segment.address + segment.size_bytes;
        int64_t at = segment.address;
        while (next != live_.end() && next->first < segment.address) ++next;
        for (; next != live_.end() && next->first < end; ++next) {
            const Allocation block = trace_.allocations[next->second];
            const int64_t size_bytes = std::min(block.block_bytes, end - block.address);
            if (block.address < at || size_bytes <= 0) continue;
            add_free_block(segment, at, block.address);
            const bool is_pending =
                block.free_requested_event >= 0 && block.free_requested_event < event_;
            segment.blocks.push_back(
                {.address = block.address,
                 .size_bytes = size_bytes,
                 .requested_bytes = std::min(block.requested_bytes, size_bytes),
                 .state = is_pending ? BlockState::kPendingFree : BlockState::kAllocated});
            made_.rows.push_back(next->second);
            at = block.address + size_bytes;
        }
        add_free_block(segment, at, end);
    }

    static void add_free_block(RecordedSegment& segment, int64_t start, int64_t end) {
        if (start < end) segment.blocks.push_back({.address = start, .size_bytes = end - start});
    }

    const Trace& trace_;
    Id<Device> device_;
    int64_t event_;
    MappedSegments held_;
    std::vector<Block> live_;                               // by address
    std::unordered_map<int32_t, int64_t> largest_request_;  // by row of the segment
    SegmentsOfTrace made_;
};

}  // namespace

SegmentsOfTrace segments_at(const Trace& trace, Id<Device> device, int64_t event) {
    return SegmentsAt(trace, device, event).make();
}

CachedPieces cached_pieces(std::span<const RecordedSegment> segments) {
    CachedPieces pieces;
    for (const RecordedSegment& segment : segments) {
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state != BlockState::kInactive) continue;
            ++pieces.num;
            pieces.total_bytes += block.size_bytes;
            pieces.largest_bytes = std::max(pieces.largest_bytes, block.size_bytes);
        }
    }
    return pieces;
}

CachedPieces cached_pieces_at(const Trace& trace, Id<Device> device, int64_t event) {
    return cached_pieces(segments_at(trace, device, event).segments);
}

}  // namespace profiler
