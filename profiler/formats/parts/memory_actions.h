#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <span>
#include <vector>

namespace profiler {

/// An allocation, a free or a change of a segment, in the order of the allocator of one device.
struct MemoryAction {
    enum Kind : uint8_t { kFree, kAlloc, kSegment };  // a free makes room for what comes after it
    int64_t event = 0;
    int64_t time_ns = 0;
    uint32_t row = 0;  // of `allocation`, or of `allocator_event`
    Kind kind = kAlloc;
};

/// Frees count when they are asked for. O(n log n).
std::vector<MemoryAction> memory_actions(const Trace& trace, Id<Device> device);

/// The same of every device, in one pass over the trace.
class ActionsByDevice {
public:
    explicit ActionsByDevice(const Trace& trace);

    const std::vector<MemoryAction>& of(Id<Device> device) const {
        return lists_[place_of(device)];
    }

private:
    static std::size_t place_of(Id<Device> device) {
        return device.valid() ? device.index() + 1 : 0;
    }
    std::vector<std::vector<MemoryAction>> lists_;  // the first of no device
};

/// The number of the first action at a time or later; behind the last action, one more than its.
int64_t event_at(std::span<const MemoryAction> actions, int64_t time_ns);

/// Gives ranges of time, such as steps, the numbers of the first and the last action in them.
template <typename Row>
void number_by_time(std::span<const MemoryAction> actions, Table<Row>& ranges) {
    for (const Id<Row> id : ranges.ids()) {
        const Row range = ranges[id];
        ranges.template set<&Row::first_event>(id, event_at(actions, range.start_ns));
        ranges.template set<&Row::last_event>(id, event_at(actions, range.end_ns));
    }
}

/// The number of each row of `device`: that in "cuda:1", or 0 if there is none. In a trace of
/// joined ranks each rank may have a "cuda:0"; there GPUs have the numbers of their order.
std::vector<int64_t> device_numbers(const Trace& trace);

}  // namespace profiler
