#pragma once

#include "profiler/trace/trace.h"
#include "profiler/trace/trace_notes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace profiler {

/// Code of a diagnostic: the program ended in the last step.
inline constexpr std::string_view kCutOffStep = "cut_off_step";

/// Whether the trace has memory over time to show: recorded steps, or the allocations of an
/// imported file without steps. A file with only a sweep has none, nor has a capture that ended
/// before its first step.
inline bool has_recorded_step(const Trace& trace) {
    if (!trace.steps.empty()) return true;
    return !trace.allocations.empty() && !trace.runs.empty() &&
           trace.run().source == Source::kImported;
}

/// Steps that came to their end. Only the last one may not have.
inline std::size_t num_whole_steps(const Trace& trace) {
    const bool is_cut_off = has_note(trace, kRanOutOfMemory) || has_note(trace, kCutOffStep);
    return trace.steps.size() - (is_cut_off && !trace.steps.empty() ? 1 : 0);
}

/// None: no step came to its end.
inline Id<Step> last_whole_step(const Trace& trace) {
    const std::size_t count = num_whole_steps(trace);
    return count > 0 ? Id<Step>(count - 1) : Id<Step>();
}

/// The step that stands for all steps: the last whole step, else the step that was cut off. None in
/// a trace without steps.
inline Id<Step> last_step(const Trace& trace) {
    const Id<Step> whole = last_whole_step(trace);
    return whole.valid() || trace.steps.empty() ? whole : Id<Step>(trace.steps.size() - 1);
}

/// The last step that all traces of a run have whole. Traces without a whole step do not count. All
/// ranks number their steps alike. None: no trace has a whole step.
inline Id<Step> last_shared_step(std::span<const Trace* const> traces) {
    Id<Step> shared;
    for (const Trace* trace : traces) {
        const Id<Step> last = last_whole_step(*trace);
        if (last.valid() && (!shared.valid() || last.index() < shared.index())) shared = last;
    }
    return shared;
}

/// The memory that the recorded step had; -1: not known. A sweep limits its batches, not the step
/// that it traced.
inline int64_t step_limit_bytes(const Trace& trace) {
    return trace.sweep_points.empty() ? trace.run().memory_limit_bytes : -1;
}

/// The last forward: a step has one for each micro-batch. None in a trace without phases.
inline Id<Phase> last_forward_of(const Trace& trace) {
    Id<Phase> last;
    for (const Id<Phase> id : trace.phases.ids()) {
        const Phase phase = trace.phases[id];
        if (phase.kind != PhaseKind::kForward) continue;
        if (!last.valid() || phase.last_event >= trace.phases.get<&Phase::last_event>(last)) {
            last = id;
        }
    }
    return last;
}

}  // namespace profiler
