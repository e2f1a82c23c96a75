#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

/// The total order of the allocator's actions.
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

/// Whether analyses look at allocations of `device`; see profiled_device.
inline bool is_on(Id<Device> profiled, Id<Device> device) {
    return !profiled.valid() || !device.valid() || device == profiled;
}

/// The bytes that an event adds to the allocator's segments. Negative when it gives bytes back.
int64_t segment_bytes_of(const AllocatorEvent& event);
/// The events of the profiled device that change its segments, in the order of their numbers.
std::vector<AllocatorEvent> ordered_segment_events(const Trace& trace);

/// All allocations and (requested) frees in the order of their event numbers.
///
/// Event numbers are nearly dense, so each change goes into the slot of its number: O(events),
/// without a sort. Sparse or repeated numbers (of a damaged file) need a stable sort.
std::vector<MemoryChange> ordered_changes(const Trace& trace);

/// Times of allocator events. time_of gives the time of the first action whose number is at least
/// `event`, or of the last action if there is none; -1 for an empty trace.
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

/// The phases of a trace by the allocator's events. An update may run inside of backward, and
/// counts first; other phases do not overlap.
class PhasesByEvent {
public:
    explicit PhasesByEvent(const Trace& trace);

    /// Between phases and outside of steps: none.
    std::optional<Phase> at(int64_t event) const;
    std::optional<PhaseKind> kind_at(int64_t event) const;
    /// Whether an update by the optimizer began before the event.
    bool has_update_before(int64_t event) const;

private:
    std::vector<Phase> updates_, others_;  // by their first event
};

}  // namespace profiler
