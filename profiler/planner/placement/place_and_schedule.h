#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/trace/trace.h"

/// Turns a step that was traced without a GPU into the trace that a GPU would give: blocks,
/// addresses and segments from the simulated allocator, times from the kernel model. The result is
/// a trace like a measured one, so every analysis and picture works on it.
///
///     step         events in order, requested bytes, ops with their work; no addresses, no times
///         │ profiler/allocator        │ kernel_model.h, step_time.h
///         ▼                           ▼
///     block bytes, addresses,     start and end of kernels, ops, phases and steps;
///     segment events              allocations and frees at the time of their op
namespace profiler {

/// Events get new numbers, since segment events come in between. Kernels do not overlap. If the
/// host is slower than the GPU, the waiting time is spread over the kernels of the phase. For a GPU
/// without a kernel model the order of events stands in for time. A step that does not fit is
/// placed as on a larger GPU, with a diagnostic that says so.
/// Errors: a trace without a recorded step or workload, an optimizer without calibration.
models::Result<Trace> place_and_schedule(const Trace& step, const Gpu& gpu,
                                         const AllocatorSettings& settings,
                                         const Calibration& calibration,
                                         const SoftwareEnvironment& environment);

/// The memory for tensors on a GPU: its usable memory minus the CUDA context.
int64_t tensor_capacity_bytes(const Gpu& gpu, const SoftwareEnvironment& environment);

}  // namespace profiler
