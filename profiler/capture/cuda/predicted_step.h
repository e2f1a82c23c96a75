#pragma once

#include "models/config/workload.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/trace/trace.h"

/// A step on a virtual GPU, as the planner needs it: what the step asks of the caching allocator,
/// in order, and which op asks. No addresses, no times: the simulator and the kernel model give
/// these for any GPU of the capability. docs/virtual_gpu.md says what is real in it.
namespace profiler {

/// Records one step into `trace`, which must be empty. Allocations are recorded from the first
/// parameter on: what the warm-up leaves behind shapes the memory that the recorded step finds.
/// Throws std::invalid_argument without that virtual GPU, Cancelled, c10::Error.
void record_predicted_step(const models::Workload& workload, const PredictedStepOptions& options,
                           const CaptureCallbacks& callbacks, Trace& trace);

}  // namespace profiler
