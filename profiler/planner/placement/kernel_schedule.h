#pragma once

#include "profiler/planner/step/step_time.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

/// Modelled times for a whole trace: kernels on their streams (stream_times.h), ops around their
/// kernels on the stream that computes, allocator events at the time of their op.
///
/// Where the trace has the kernels that an op launched, they share the time of the op's work
/// (launch_shares.h). Where the trace has none, each piece of the op's work counts as one kernel,
/// in the place of the op's copy if there is one.
namespace profiler {

/// Gives `trace` the modelled times of `work`, its last step. Where no measurement of the GPU
/// stands behind them, a diagnostic says so.
void add_modelled_times(Trace& trace, const StepWork& work, const TimeModel& model);

}  // namespace profiler
