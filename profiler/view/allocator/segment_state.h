#pragma once

#include "profiler/trace/mapped_segments.h"
#include "profiler/view/memory/block_groups.h"

#include <cstddef>
#include <cstdint>
#include <vector>

/// What a caching allocator holds at one moment: its segments, and the blocks in them. Segments and
/// blocks lie where the trace recorded them, or where a replay with other settings placed them.
namespace profiler {

struct BlockPlace {
    int64_t address = -1;  // -1: never placed, because memory ran out before
    int64_t size_bytes = 0;
};

/// Where a replay placed the blocks of a trace, and the segments that it took for them.
struct SegmentLayout {
    const Trace* trace = nullptr;        // whose; only compared
    std::vector<AllocatorEvent> events;  // in order; their numbers are those of the allocations
    std::vector<BlockPlace> blocks;      // by row of Trace::allocations
    Id<Allocation> failed;               // memory ran out here; invalid: it did not
};

/// A moment in the allocator's order: after the event `last`, at a time of the trace's own clock.
struct AllocatorNow {
    uint32_t rank = 0;         // changes of memory that have happened
    int64_t last = -1;         // the event of the last one of them
    int64_t next = INT64_MAX;  // the event of the first one that has not
    int64_t own_ns = 0;
    bool is_earlier = false;  // memory ran out before the moment that was asked for
};

struct PlacedBlock {
    int64_t address = 0;
    int64_t size_bytes = 0;
    bool is_pending = false;  // freed, but another stream may still use it
    Id<Allocation> allocation;
};

/// Reads one trace. `layout` is null for what the trace recorded; both are borrowed.
class SegmentReader {
public:
    SegmentReader(const StepIndex& source, const SegmentLayout* layout);

    /// Segment events of the profiled device, in order. Damaged ones are left out.
    const std::vector<AllocatorEvent>& events() const { return events_; }
    const AllocatorEvent& event(Id<AllocatorEvent> id) const { return events_[id.index()]; }

    /// After memory ran out there is nothing more: then it is the moment right before.
    AllocatorNow at_time(int64_t own_ns) const;
    /// How many of events() have happened. Those between two changes of memory count by their
    /// times.
    std::size_t events_until(const AllocatorNow& now) const;
    /// The segments after the first `count` events; ids are positions in events().
    MappedSegments segments_after(std::size_t count) const;
    /// By address.
    std::vector<PlacedBlock> blocks_at(const AllocatorNow& now) const;
    BlockPlace place_of(Id<Allocation> allocation) const;
    /// The first block that is allocated at this event or later; BlockHistory::kNone if none is.
    uint32_t first_block_from(int64_t event) const;
    /// Right before the block is allocated.
    AllocatorNow before_block(uint32_t block) const;

    const StepIndex& source() const { return source_; }
    bool is_replayed() const { return layout_ != nullptr; }

private:
    AllocatorNow at_rank(uint32_t rank) const;

    const StepIndex& source_;
    const SegmentLayout* layout_;
    std::vector<AllocatorEvent> events_;
};

}  // namespace profiler
