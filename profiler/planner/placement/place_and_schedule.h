#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/trace/trace.h"

#include <string_view>

/// From a step that was traced without a GPU to the trace that a GPU would have given: blocks,
/// addresses and segments from the exact allocator, times from the kernel model. The same kind of
/// trace as a measured one, so that every analysis and picture works on it.
///
///     meta trace   events in order, requested bytes, ops with their work; no addresses, no times
///         │ profiler/allocator        │ kernel_model.h, step_time.h
///         ▼                           ▼
///     block bytes, addresses,     start and end of kernels, ops, phases and steps;
///     segment events              allocations and frees at the time of their op
namespace profiler {

/// Events are numbered anew: segment events come right before the allocation that needs them.
/// Kernels do not overlap; when the host is slower than the GPU, its waiting is spread over the
/// kernels of the phase. A GPU without a kernel model keeps the order of events as its time.
/// A step that does not fit is placed on a larger GPU, and `health` says so.
/// Errors: a trace without a recorded step or workload, an optimizer without calibration.
models::Result<Trace> lower(const Trace& meta, const Gpu& gpu, const AllocatorSettings& settings,
                            const Calibration& calibration, const SoftwareEnvironment& setup);

/// The code of the health note of a step that does not fit.
inline constexpr std::string_view kDoesNotFitCode = "does_not_fit";

/// What tensors may take on a GPU: its usable memory without the context.
int64_t tensor_capacity_bytes(const Gpu& gpu, const SoftwareEnvironment& setup);

}  // namespace profiler
