#pragma once

#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/mapped_segments.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

/// Turns the caching allocator's actions, one after another, into rows of `allocation`, `storage`
/// and `allocator_event`. A capture feeds it live, a reader feeds it a recording.
///
///     alloc ─────────► adds a row of allocation and one of storage; live by its address
///     free_requested ► sets the row's free event, time and op
///     free_completed ► sets the row's completed event; the address is free again
///     segment_*, oom, snapshot ► adds a row of allocator_event
namespace profiler {

/// The streams of one device in a trace: one row per CUDA handle, added when it first appears.
class StreamRows {
public:
    StreamRows(Trace& trace, Id<Device> device) : trace_(&trace), device_(device) {}

    Id<Stream> row_of(int64_t handle) {
        const auto [found, is_new] = rows_.try_emplace(handle);
        if (is_new) found->second = trace_->streams.append({.device = device_, .handle = handle});
        return found->second;
    }
    Id<Device> device() const { return device_; }

private:
    Trace* trace_;
    Id<Device> device_;
    std::unordered_map<int64_t, Id<Stream>> rows_;
};

/// Actions that did not fit the state of the allocator as known so far.
struct AllocatorRowCounts {
    int64_t unmatched_frees = 0;      // frees of an address where no block was live
    int64_t replaced_blocks = 0;      // allocations at an address where a block was live
    int64_t outside_segments = 0;     // allocations in no known segment
    int64_t unmatched_segments = 0;   // segment_free or segment_unmap of bytes that were not held
    int64_t assumed_block_sizes = 0;  // allocations whose block size the allocator did not report
};

/// Adds one diagnostic to the trace for each count that is not 0.
void add_diagnostics(const AllocatorRowCounts& counts, Trace& trace);

class AllocatorRows {
public:
    /// `category` is what a new storage counts as until something else is known of it.
    AllocatorRows(Trace& trace, StreamRows& streams, Category category = Category::kTemporary)
        : trace_(trace), streams_(streams), category_(category) {}

    /// Adds what the allocator holds when recording starts: one snapshot event, the segments, then
    /// every block that is allocated or waits for its free, by address. Each takes an event of
    /// `next`.
    void load(std::span<const RecordedSegment> segments,
              const std::function<AllocatorMoment()>& next);

    /// Adds one action. The block of an allocation is taken to be the request rounded up to 512
    /// bytes until set_block_bytes corrects it.
    void apply(const RecordedEvent& event, const AllocatorMoment& moment);

    /// Sets the true size of the block at `address`: the allocator does not split off small rests.
    void set_block_bytes(int64_t address, int64_t block_bytes);

    /// The live allocation that begins at `address`, or none.
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
    Category category_;
    MappedSegments segments_;
    std::unordered_map<int64_t, Live> live_;  // by address
    int64_t allocated_bytes_ = 0;
    AllocatorRowCounts counts_;
};

}  // namespace profiler
