#pragma once

#include "profiler/trace/trace.h"

namespace profiler {

/// Whether the trace has memory over time to show: recorded steps, or the allocations of an
/// imported file without steps. A file with only a sweep has none, nor has a capture that ended
/// before its first step.
inline bool has_recorded_step(const Trace& trace) {
    if (!trace.steps.empty()) return true;
    return !trace.allocations.empty() && !trace.runs.empty() &&
           trace.run().source == Source::kImported;
}

}  // namespace profiler
