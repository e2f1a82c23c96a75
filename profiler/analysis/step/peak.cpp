#include "profiler/analysis/step/peak.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"

#include <algorithm>
#include <functional>

namespace profiler {
namespace {

/// A range of allocator events in which to search for the peak: [first, last).
struct Window {
    int64_t first = 0;
    int64_t last = 0;
};

/// The failure up to which all of the trace counts; none: only steps count.
Id<Failure> end_of_all(const Trace& trace) {
    const Id<Failure> out_of_memory = fatal_out_of_memory(trace);
    if (out_of_memory.valid() || !whole_steps(trace).empty()) return out_of_memory;
    return fatal_failure(trace);
}

/// Whether moments of each step count.
std::vector<bool> are_counted(const Trace& trace) {
    if (ran_out_of_memory(trace)) return std::vector<bool>(trace.steps.size(), true);
    return are_in_figures(trace);
}

/// The number of the request that failed. Events of another device have numbers of their own.
int64_t event_of(const Trace& trace, const Failure& failure) {
    const bool is_here = is_on(profiled_device(trace), failure.device) && failure.event >= 0;
    return is_here ? failure.event : INT64_MAX;
}

std::vector<Window> windows_of_peak(const Trace& trace) {
    if (const Id<Failure> end = end_of_all(trace); end.valid()) {
        return {{INT64_MIN, event_of(trace, trace.failures[end])}};
    }
    const std::vector<bool> is_counted = are_counted(trace);
    std::vector<Window> windows;
    for (const Id<Step> id : trace.steps.ids()) {
        const Step step = trace.steps[id];
        if (is_counted[id.index()]) windows.push_back({step.first_event, step.last_event});
    }
    std::ranges::sort(windows, {}, &Window::first);
    if (windows.empty()) windows.push_back({INT64_MIN, INT64_MAX});
    return windows;
}

struct Maximum {
    int64_t bytes = 0;
    int64_t event = -1;
    int64_t time_ns = -1;
    Id<Allocation> allocation;  // that made the maximum; none: the maximum is older than the window

    void offer(int64_t candidate, int64_t at_event, int64_t at_ns, Id<Allocation> by) {
        if (candidate > bytes) *this = {candidate, at_event, at_ns, by};
    }
};

/// Walks the changes once. The bytes live when a window begins are its first candidate.
Maximum find_maximum(const Trace& trace) {
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();

    const std::vector<Window> windows = windows_of_peak(trace);
    std::size_t window = 0;
    bool entered = false;
    Maximum maximum;
    int64_t live_bytes = 0;
    int64_t last_event = -1;
    int64_t last_ns = -1;
    for (const MemoryChange change : ordered_changes(trace)) {
        const std::size_t i = change.allocation_index();
        const int64_t event = change.is_free() ? free_event[i] : alloc_event[i];
        while (window < windows.size() && event >= windows[window].last) {
            if (!entered) maximum.offer(live_bytes, last_event, last_ns, {});
            entered = false;
            ++window;
        }
        if (window == windows.size()) break;
        const bool inside = event >= windows[window].first;
        if (inside && !entered) {
            maximum.offer(live_bytes, last_event, last_ns, {});
            entered = true;
        }
        live_bytes += change.is_free() ? -size[i] : size[i];
        last_event = event;
        last_ns = change.is_free() ? free_ns[i] : alloc_ns[i];
        if (inside && !change.is_free()) {
            maximum.offer(live_bytes, event, alloc_ns[i], Id<Allocation>(i));
        }
    }
    if (window < windows.size() && !entered) maximum.offer(live_bytes, last_event, last_ns, {});
    return maximum;
}

/// The most that segments held in the time of the peak; -1 when the allocator has no segments.
int64_t peak_of_segments(const Trace& trace) {
    const std::vector<AllocatorEvent> changes = ordered_segment_events(trace);
    if (changes.empty()) return -1;
    int64_t peak_bytes = 0;
    for (const Window& window : windows_of_peak(trace)) {
        int64_t held_bytes = 0;
        for (const AllocatorEvent& change : changes) {
            if (change.event >= window.last) break;
            if (change.event >= window.first) peak_bytes = std::max(peak_bytes, held_bytes);
            held_bytes += segment_bytes_of(change);
            if (change.event >= window.first) peak_bytes = std::max(peak_bytes, held_bytes);
        }
        peak_bytes = std::max(peak_bytes, held_bytes);
    }
    return peak_bytes;
}

template <typename Row>
Id<Row> row_around(const Table<Row>& table, int64_t event) {
    const auto first = table.template column<&Row::first_event>();
    const auto last = table.template column<&Row::last_event>();
    for (std::size_t i = 0; i < first.size(); ++i) {
        if (first[i] <= event && event < last[i]) return Id<Row>(i);
    }
    return {};
}

}  // namespace

std::vector<Id<Allocation>> live_at(const Trace& trace, int64_t event, Id<Device> device) {
    const auto devices = trace.allocations.column<&Allocation::device>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    std::vector<Id<Allocation>> live;
    for (std::size_t i = 0; i < alloc_event.size(); ++i) {
        if (!is_on(device, devices[i]) || alloc_event[i] > event) continue;
        if (free_event[i] < 0 || free_event[i] > event) live.push_back(Id<Allocation>(i));
    }
    std::ranges::stable_sort(live, std::greater(),
                             [&](Id<Allocation> id) { return size[id.index()]; });
    return live;
}

CategoryBytes bytes_by_category(const Trace& trace, std::span<const Id<Allocation>> blocks) {
    CategoryBytes bytes{};
    for (const Id<Allocation> id : blocks) {
        bytes[static_cast<std::size_t>(category_of_block(trace, id))] +=
            trace.allocations.get<&Allocation::requested_bytes>(id);
    }
    return bytes;
}

PeakReport find_peak(const Trace& trace) {
    const Maximum maximum = find_maximum(trace);
    PeakReport peak;
    peak.allocated_bytes = maximum.bytes;
    peak.event = maximum.event;
    peak.time_ns = maximum.time_ns;
    const int64_t segment_bytes = peak_of_segments(trace);
    peak.reserved_bytes = segment_bytes < 0 ? maximum.bytes : segment_bytes;
    if (maximum.bytes == 0) return peak;

    peak.step = row_around(trace.steps, peak.event);
    peak.phase = row_around(trace.phases, peak.event);
    if (maximum.allocation.valid()) {
        peak.op = trace.allocations.get<&Allocation::op>(maximum.allocation);
    }
    peak.live = live_at(trace, peak.event, profiled_device(trace));
    peak.by_category = bytes_by_category(trace, peak.live);
    return peak;
}

namespace {

struct LiveAfter {
    int64_t event = 0;
    int64_t bytes = 0;
};

std::vector<LiveAfter> live_after_each_change(const Trace& trace) {
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    std::vector<LiveAfter> live;
    int64_t bytes = 0;
    for (const MemoryChange change : ordered_changes(trace)) {
        const std::size_t i = change.allocation_index();
        bytes += change.is_free() ? -size[i] : size[i];
        live.push_back({change.is_free() ? free_event[i] : alloc_event[i], bytes});
    }
    return live;
}

}  // namespace

PhasePeaks find_phase_peaks(const Trace& trace) {
    PhasePeaks peaks;
    peaks.fill(-1);
    const auto live = live_after_each_change(trace);
    const std::vector<bool> is_counted = are_counted(trace);
    for (const Phase phase : trace.phases.rows()) {
        if (phase.step.valid() && !is_counted[phase.step.index()]) continue;
        auto next = std::ranges::lower_bound(live, phase.first_event, {}, &LiveAfter::event);
        // What lives when the phase begins counts too.
        int64_t highest = next == live.begin() ? 0 : std::prev(next)->bytes;
        for (; next != live.end() && next->event < phase.last_event; ++next) {
            highest = std::max(highest, next->bytes);
        }
        int64_t& peak = peaks[static_cast<std::size_t>(phase.kind)];
        peak = std::max(peak, highest);
    }
    return peaks;
}

}  // namespace profiler
