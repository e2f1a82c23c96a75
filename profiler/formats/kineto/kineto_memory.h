#pragma once

#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/kineto/kineto_ops.h"

#include <utility>
#include <vector>

namespace profiler::kineto {

/// The rows of `allocation`, `storage` and `allocator_event` from "[memory]" events.
///
/// The events name the block (2021: only its size), the bytes, and the totals of the device after
/// them. Blocks from before the recording are rebuilt: each one that is freed in it, and the rest
/// as one block whose address is not known (-1). Sizes are those of blocks; what was asked for is
/// not recorded. The allocator's segments are known by their sum alone, so their addresses are -1.
class MemoryRows {
public:
    MemoryRows(const KinetoEvents& events, int64_t start_ns, OpRows& ops, Trace& trace)
        : events_(events), start_ns_(start_ns), ops_(ops), trace_(trace) {}
    void add();

    /// The number of the first allocator event at or after a time of the trace.
    int64_t event_at(int64_t time_ns) const;

    /// The call stacks of the allocations whose event has one.
    const std::vector<std::pair<Id<Allocation>, StackOfEvent>>& call_stacks() const {
        return call_stacks_;
    }

private:
    struct DeviceState;
    void add_start(DeviceState& device, int64_t device_number, int64_t time_ns);
    void apply(DeviceState& device, const MemoryChangeEvent& change);
    Id<Allocation> add_block(int64_t device_number, int64_t address, int64_t size_bytes,
                             int64_t time_ns, Id<Op> op);
    void end_block(Id<Allocation> block, int64_t event, int64_t time_ns, Id<Op> op);
    void add_reserved(DeviceState& device, int64_t device_number, int64_t reserved_bytes,
                      int64_t time_ns);
    int64_t next_event(int64_t time_ns);
    void add_notes(int64_t num_start_events);

    const KinetoEvents& events_;
    int64_t start_ns_;
    OpRows& ops_;
    Trace& trace_;
    std::vector<int64_t> times_;  // by event number
    std::vector<std::pair<Id<Allocation>, StackOfEvent>> call_stacks_;
    int64_t mismatches_ = 0;  // events whose total differs from the running sum
    int64_t replaced_ = 0;
    int64_t without_address_ = 0;
    int64_t without_total_ = 0;
};

}  // namespace profiler::kineto
