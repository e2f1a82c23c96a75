#include "profiler/analysis/step/event_order.h"

#include <algorithm>
#include <iterator>

namespace profiler {
namespace {

struct EventRange {
    int64_t first = 0;
    int64_t last = -1;
    std::size_t count = 0;

    void add(int64_t event) {
        if (count == 0) {
            first = last = event;
        } else {
            first = std::min(first, event);
            last = std::max(last, event);
        }
        ++count;
    }
    /// Whether one slot per number costs little more memory than the changes themselves.
    bool is_dense() const {
        const auto width = static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
        return width < 8 * static_cast<uint64_t>(count) + 4096;
    }
};

/// Calls visit(event, change) for each change of the profiled device, in table order.
template <typename Visit>
void for_each_change(const Trace& trace, Visit&& visit) {
    const auto device = trace.allocations.column<&Allocation::device>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const Id<Device> profiled = profiled_device(trace);
    for (std::size_t i = 0; i < alloc_event.size(); ++i) {
        if (!is_on(profiled, device[i])) continue;
        visit(alloc_event[i], MemoryChange(i, false));
        if (free_event[i] >= 0) visit(free_event[i], MemoryChange(i, true));
    }
}

std::vector<MemoryChange> sorted_changes(const Trace& trace) {
    std::vector<std::pair<int64_t, MemoryChange>> changes;
    for_each_change(
        trace, [&](int64_t event, MemoryChange change) { changes.emplace_back(event, change); });
    std::ranges::stable_sort(changes, {}, &std::pair<int64_t, MemoryChange>::first);
    std::vector<MemoryChange> ordered;
    ordered.reserve(changes.size());
    for (const auto& [event, change] : changes) ordered.push_back(change);
    return ordered;
}

}  // namespace

int64_t segment_bytes_of(const AllocatorEvent& event) {
    switch (event.action) {
        case AllocatorAction::kSegmentAlloc:
        case AllocatorAction::kSegmentMap:
            return event.size_bytes;
        case AllocatorAction::kSegmentFree:
        case AllocatorAction::kSegmentUnmap:
            return -event.size_bytes;
        case AllocatorAction::kOom:
        case AllocatorAction::kSnapshot:
            break;
    }
    return 0;
}

std::vector<AllocatorEvent> ordered_segment_events(const Trace& trace) {
    const Id<Device> profiled = profiled_device(trace);
    std::vector<AllocatorEvent> events;
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        if (segment_bytes_of(event) != 0 && is_on(profiled, event.device)) events.push_back(event);
    }
    std::ranges::stable_sort(events, {}, &AllocatorEvent::event);
    return events;
}

std::vector<MemoryChange> ordered_changes(const Trace& trace) {
    EventRange range;
    for_each_change(trace, [&](int64_t event, MemoryChange) { range.add(event); });
    if (range.count == 0) return {};
    if (!range.is_dense()) return sorted_changes(trace);

    std::vector<MemoryChange> slots(static_cast<std::size_t>(range.last - range.first) + 1);
    bool collided = false;
    for_each_change(trace, [&](int64_t event, MemoryChange change) {
        MemoryChange& slot = slots[static_cast<std::size_t>(event - range.first)];
        collided |= slot.valid();
        slot = change;
    });
    if (collided) return sorted_changes(trace);
    std::erase_if(slots, [](MemoryChange change) { return !change.valid(); });
    return slots;
}

EventClock::EventClock(const Trace& trace) {
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();
    for (const MemoryChange change : ordered_changes(trace)) {
        const std::size_t i = change.allocation_index();
        ticks_.push_back(change.is_free() ? Tick{free_event[i], free_ns[i]}
                                          : Tick{alloc_event[i], alloc_ns[i]});
    }
}

int64_t EventClock::time_of(int64_t event) const {
    if (ticks_.empty()) return -1;
    auto tick = std::ranges::lower_bound(ticks_, event, {}, &Tick::event);
    return tick == ticks_.end() ? ticks_.back().time_ns : tick->time_ns;
}

namespace {

std::optional<Phase> phase_in(const std::vector<Phase>& phases, int64_t event) {
    const auto after = std::ranges::upper_bound(phases, event, {}, &Phase::first_event);
    if (after == phases.begin()) return std::nullopt;
    const Phase& phase = *std::prev(after);
    return event < phase.last_event ? std::optional(phase) : std::nullopt;
}

}  // namespace

PhasesByEvent::PhasesByEvent(const Trace& trace) {
    for (const Phase phase : trace.phases.rows()) {
        (phase.kind == PhaseKind::kOptimizer ? updates_ : others_).push_back(phase);
    }
    std::ranges::stable_sort(updates_, {}, &Phase::first_event);
    std::ranges::stable_sort(others_, {}, &Phase::first_event);
}

std::optional<Phase> PhasesByEvent::at(int64_t event) const {
    const auto update = phase_in(updates_, event);
    return update ? update : phase_in(others_, event);
}

std::optional<PhaseKind> PhasesByEvent::kind_at(int64_t event) const {
    const auto phase = at(event);
    return phase ? std::optional(phase->kind) : std::nullopt;
}

bool PhasesByEvent::has_update_before(int64_t event) const {
    return !updates_.empty() && updates_.front().first_event < event;
}

}  // namespace profiler
