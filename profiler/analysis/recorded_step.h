#pragma once

#include "profiler/trace/trace.h"

/// What tells a capture from a file that holds a sweep alone, or that ended before its first step.
namespace profiler {

/// Whether memory over time can be shown: steps or, of an imported snapshot, allocations without
/// them.
inline bool has_recorded_step(const Trace& trace) {
    if (!trace.steps.empty()) return true;
    return !trace.allocations.empty() && !trace.runs.empty() &&
           trace.run().source == Source::kImported;
}

}  // namespace profiler
