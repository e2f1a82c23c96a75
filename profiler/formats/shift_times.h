#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// Adds `shift_ns` to every time of the trace. What they mean stays the same: the wall clock at
/// time 0 goes the other way.
void shift_times(Trace& trace, int64_t shift_ns);

}  // namespace profiler
