#include "profiler/analysis/step/phase_peaks.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>
#include <vector>

namespace profiler {
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
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        auto next = std::lower_bound(
            live.begin(), live.end(), phase.first_event,
            [](const LiveAfter& after, int64_t event) { return after.event < event; });
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
