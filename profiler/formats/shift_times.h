#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// All times of a trace lie within 52 days: one that does not is wrong.
inline constexpr int64_t kMostNanosecondsApart = int64_t{1} << 52;

/// Adds `shift_ns` to every time of the trace. What they mean stays the same: the wall clock at
/// time 0 goes the other way.
void shift_times(Trace& trace, int64_t shift_ns);

}  // namespace profiler
