#include "profiler/analysis/step/phases_by_event.h"

#include <algorithm>
#include <iterator>

namespace profiler {
namespace {

std::optional<Phase> phase_in(const std::vector<Phase>& phases, int64_t event) {
    const auto after = std::ranges::upper_bound(phases, event, {}, &Phase::first_event);
    if (after == phases.begin()) return std::nullopt;
    const Phase& phase = *std::prev(after);
    return event < phase.last_event ? std::optional(phase) : std::nullopt;
}

}  // namespace

PhasesByEvent::PhasesByEvent(const Trace& trace) {
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
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
