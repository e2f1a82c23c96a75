#pragma once

#include "profiler/trace/trace.h"
#include "profiler/trace/trace_notes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace profiler {

/// Code of a diagnostic: the program ended in the last step.
inline constexpr std::string_view kCutOffStep = "cut_off_step";

/// Whether the trace has memory over time to show: recorded steps, the allocations of a program
/// that ended before its first step, or those of an imported file without steps. A file with only a
/// sweep has none, nor has a capture that ended before its first allocation.
inline bool has_recorded_step(const Trace& trace) {
    if (!trace.steps.empty()) return true;
    if (trace.allocations.empty()) return false;
    return fatal_failure(trace).valid() || trace.run().source == Source::kImported;
}

/// How a step went. Files of version 2 say in a note that the last one was cut off.
inline StepKind kind_of(const Trace& trace, Id<Step> step) {
    const bool is_last = step.index() + 1 == trace.steps.size();
    const bool is_cut_off =
        is_last && (has_note(trace, kCutOffStep) || has_note(trace, kRanOutOfMemory));
    return is_cut_off ? StepKind::kBroken : trace.steps.get<&Step::kind>(step);
}

/// The steps that figures are of, in their order: the whole ones; if there are none, those that are
/// the first of a training. A broken step is never one of them.
inline std::vector<Id<Step>> whole_steps(const Trace& trace) {
    std::vector<Id<Step>> whole, first;
    for (const Id<Step> step : trace.steps.ids()) {
        const StepKind kind = kind_of(trace, step);
        if (kind == StepKind::kWhole) whole.push_back(step);
        if (kind == StepKind::kFirst) first.push_back(step);
    }
    return whole.empty() ? first : whole;
}

/// Whether figures are of each step: of the whole steps; if no step is whole, of all.
inline std::vector<bool> are_in_figures(const Trace& trace) {
    const std::vector<Id<Step>> whole = whole_steps(trace);
    std::vector<bool> are_in(trace.steps.size(), whole.empty());
    for (const Id<Step> step : whole) are_in[step.index()] = true;
    return are_in;
}

/// None: no step came to its end.
inline Id<Step> last_whole_step(const Trace& trace) {
    const std::vector<Id<Step>> whole = whole_steps(trace);
    return whole.empty() ? Id<Step>() : whole.back();
}

/// The step that stands for all steps: the last whole step, else the step that was cut off. None in
/// a trace without steps.
inline Id<Step> last_step(const Trace& trace) {
    const Id<Step> whole = last_whole_step(trace);
    return whole.valid() || trace.steps.empty() ? whole : Id<Step>(trace.steps.size() - 1);
}

/// The last step that every trace of a run holds completely. Traces without a complete step do not
/// count. All ranks number their steps alike. None: no trace has a complete step.
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

/// The last forward of the steps that figures are of: a step has one for each micro-batch. None in
/// a trace without phases.
inline Id<Phase> last_forward_of(const Trace& trace) {
    const std::vector<bool> is_in_figures = are_in_figures(trace);
    Id<Phase> last;
    for (const Id<Phase> id : trace.phases.ids()) {
        const Phase phase = trace.phases[id];
        const bool counts =
            phase.step.valid() ? is_in_figures[phase.step.index()] : trace.steps.empty();
        if (phase.kind != PhaseKind::kForward || !counts) continue;
        if (!last.valid() || phase.last_event >= trace.phases.get<&Phase::last_event>(last)) {
            last = id;
        }
    }
    return last;
}

}  // namespace profiler
