#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// Whether the trace has memory over time to show: recorded steps, or the allocations of an
/// imported file without steps. A file with only a sweep has none, nor has a capture that ended
/// before its first step.
inline bool has_recorded_step(const Trace& trace) {
    if (!trace.steps.empty()) return true;
    return !trace.allocations.empty() && !trace.runs.empty() &&
           trace.run().source == Source::kImported;
}

/// The memory that the recorded step had; -1: not known. The limit of a sweep is that of its
/// batches, not of the step that it traced.
inline int64_t step_limit_bytes(const Trace& trace) {
    return trace.sweep_points.empty() ? trace.run().memory_limit_bytes : -1;
}

/// The last forward: a step has one for each micro-batch. None in a trace without phases.
inline Id<Phase> last_forward_of(const Trace& trace) {
    Id<Phase> last;
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        if (phase.kind != PhaseKind::kForward) continue;
        if (!last.valid() || phase.last_event >= trace.phases.get<&Phase::last_event>(last)) {
            last = Id<Phase>(i);
        }
    }
    return last;
}

}  // namespace profiler
