#pragma once

#include "profiler/capture/allocation_source.h"
#include "profiler/capture/cuda/mapped_segments.h"
#include "profiler/capture/cuda/stream_rows.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

/// From the caching allocator's actions, one after another, to rows of `allocation`, `storage` and
/// `allocator_event`: no torch, no CUDA.
///
///     alloc ─────────► a row of allocation and one of storage; live by its address
///     free_requested ► the row's free event, time and op
///     free_completed ► the row's completed event; the address is free
///     segment_*, oom, snapshot ► a row of allocator_event
namespace profiler {

/// Actions that did not fit what was known.
struct AllocatorRowCounts {
    int64_t unmatched_frees = 0;      // of an address where nothing was live
    int64_t replaced_blocks = 0;      // allocated where something still was
    int64_t outside_segments = 0;     // allocated where no segment was known
    int64_t unmatched_segments = 0;   // freed or unmapped bytes that were not held, as events
    int64_t assumed_block_sizes = 0;  // allocations whose block size the allocator did not tell
};

class AllocatorRows {
public:
    AllocatorRows(Trace& trace, StreamRows& streams) : trace_(trace), streams_(streams) {}

    /// What the allocator holds when recording starts, so that nothing appears from nowhere: one
    /// snapshot event, the segments, then every block that is allocated or waits for its free, by
    /// address. Each takes an event of `next`.
    void load(std::span<const RecordedSegment> segments,
              const std::function<AllocatorMoment()>& next);

    /// One action. An alloc's block is taken to be the request rounded to 512 bytes until
    /// set_block_bytes says more.
    void apply(const RecordedEvent& event, const AllocatorMoment& moment);

    /// How large the block at `address` really is: the allocator does not split off small rests.
    void set_block_bytes(int64_t address, int64_t block_bytes);

    /// The live allocation that begins at `address`; none when there is none.
    Id<Allocation> at(int64_t address) const;

    int64_t allocated_bytes() const { return allocated_bytes_; }  // blocks not asked to be freed
    int64_t reserved_bytes() const { return segments_.total_bytes(); }
    std::size_t live_blocks() const { return live_.size(); }
    const AllocatorRowCounts& counts() const { return counts_; }

private:
    struct Live {
        Id<Allocation> allocation;
        int64_t block_bytes = 0;
        bool free_requested = false;
        bool size_known = false;
    };
    struct Block {
        int64_t address, requested_bytes, block_bytes, stream, pool;
        bool size_known = true;
    };
    void add_allocation(const Block& block, const AllocatorMoment& moment);
    void request_free(const RecordedEvent& event, const AllocatorMoment& moment);
    void complete_free(const RecordedEvent& event, const AllocatorMoment& moment);
    void add_event(AllocatorAction action, const RecordedEvent& event,
                   const AllocatorMoment& moment);
    void forget(std::unordered_map<int64_t, Live>::iterator live);

    Trace& trace_;
    StreamRows& streams_;
    MappedSegments segments_;
    std::unordered_map<int64_t, Live> live_;  // by address
    int64_t allocated_bytes_ = 0;
    AllocatorRowCounts counts_;
};

}  // namespace profiler
