#pragma once

#include "models/config/result.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/trace/trace.h"

/// Modelled times for a program of the user's that ran on a virtual GPU, where no kernel runs and
/// the clock is the host's.
///
/// The ops' own work decides, in the parameter update too. What the program does outside of phases
/// takes no time but for its copies between host and device.
namespace profiler {

/// Replaces the times of the trace. Calls of CUDA's interface are left out: they are the host's.
/// Errors: a trace without a recorded step, a precision or GPU that has no kernel model.
models::Result<void> model_times(Trace& trace, const Gpu& gpu, const Calibration& calibration,
                                 const SoftwareEnvironment& environment);

}  // namespace profiler
