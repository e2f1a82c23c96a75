#include "profiler/capture/python/failure_rows.h"

#include <cstddef>
#include <cstdint>

namespace profiler {
namespace {

bool has_step_ended_since(const Trace& trace, int64_t event) {
    for (std::size_t row = trace.steps.size(); row-- > 0;) {
        const Step step = trace.steps[Id<Step>(row)];
        if (step.kind != StepKind::kBroken) return step.last_event > event;
    }
    return false;
}

/// The failure that `outcome` is about. None: there is none yet.
Id<Failure> failure_with(FailureOutcome outcome, const Trace& trace) {
    if (trace.failures.empty()) return {};
    const Id<Failure> newest(trace.failures.size() - 1);
    const Failure failure = trace.failures[newest];
    if (failure.error.valid()) return {};
    const bool has_ended = outcome == FailureOutcome::kEnded;
    if (has_ended && has_step_ended_since(trace, failure.event)) return {};
    return newest;
}

}  // namespace

void end_failure(const FailureEnd& end, const Failure& here, Trace& trace) {
    Id<Failure> failure = failure_with(end.outcome, trace);
    if (!failure.valid()) {
        if (end.outcome != FailureOutcome::kEnded) return;
        failure = trace.failures.append(here);
    }
    trace.failures.set<&Failure::error>(failure, trace.strings.intern(end.error));
    trace.failures.set<&Failure::message>(failure, trace.strings.intern(end.message));
    trace.failures.set<&Failure::outcome>(failure, end.outcome);
}

}  // namespace profiler
