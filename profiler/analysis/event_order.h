#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

/// The allocator's total order, as analyses walk it.
namespace profiler {

/// One allocation or free of the profiled device.
class MemoryChange {
public:
    MemoryChange() = default;
    MemoryChange(std::size_t allocation, bool is_free)
        : code_(static_cast<uint32_t>(allocation) * 2 + (is_free ? 1 : 0)) {}

    bool valid() const { return code_ != kNone; }
    std::size_t allocation_index() const { return code_ >> 1; }
    bool is_free() const { return (code_ & 1) != 0; }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    uint32_t code_ = kNone;  // 4 bytes: a trace of a million allocations has two million changes
};

/// The device whose memory is analysed: the first that is not the host, else the first; none when
/// the trace names no devices (then all allocations belong to the one there is).
Id<Device> profiled_device(const Trace& trace);

/// True when allocations of `device` are to be looked at; see profiled_device.
inline bool is_on(Id<Device> profiled, Id<Device> device) {
    return !profiled.valid() || !device.valid() || device == profiled;
}

/// What an event adds to the allocator's segments; negative for what it gives back, 0 for what
/// changes none.
int64_t segment_bytes_of(const AllocatorEvent& event);

/// All allocations and (requested) frees in the order of their event numbers.
///
/// Event numbers are nearly dense, so each change is put straight into its slot: O(events), no
/// sort. Sparse or repeated numbers (imported files) fall back to a stable sort.
std::vector<MemoryChange> ordered_changes(const Trace& trace);

/// Wall time of allocator events: when the first action with a number >= `event` happened, or the
/// last action of all when there is none. -1 for an empty trace.
class EventClock {
public:
    explicit EventClock(const Trace& trace);
    int64_t time_of(int64_t event) const;

private:
    struct Tick {
        int64_t event;
        int64_t time_ns;
    };
    std::vector<Tick> ticks_;  // by event
};

}  // namespace profiler
