#pragma once

#include "profiler/formats/parts/span_tree.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

/// What joins the blocks of a memory snapshot with the profiler's trace of the same run
/// (joined_trace.h).
namespace profiler {

/// Finds the op that ran at a time.
class RunningOps {
public:
    explicit RunningOps(const Trace& trace);

    /// The innermost op of the thread whose op started last; none outside of ops.
    Id<Op> at(int64_t time_ns) const;

private:
    std::vector<kineto::SpanTree> threads_;
};

/// num_start_events of each device.
class StartEvents {
public:
    explicit StartEvents(const Trace& trace);
    int64_t of(Id<Device> device) const { return device.valid() ? counts_[device.index()] : 0; }

private:
    std::vector<int64_t> counts_;
};

/// Which row of the profiler's allocations is which of the snapshot's.
class SameBlocks {
public:
    SameBlocks(const Trace& memory, const Trace& profile);

    /// What to add to the snapshot's times, so that they fit those of the profiler.
    int64_t clock_shift_ns() const { return clock_shift_ns_; }

    /// The profiler's row of a block, whose times are corrected; none if it recorded none.
    Id<Allocation> of(const Allocation& block) const;

private:
    int64_t time_of(Id<Allocation> row) const;
    /// Of the rows with the address and the size, the one nearest in time.
    Id<Allocation> nearest_to(const Allocation& block) const;

    const Trace& profile_;
    std::unordered_map<int64_t, std::vector<Id<Allocation>>> by_address_;
    int64_t clock_shift_ns_ = 0;
};

}  // namespace profiler
