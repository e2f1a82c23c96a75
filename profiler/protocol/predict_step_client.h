#pragma once

#include "models/config/compute_capability.h"
#include "models/config/workload.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// A step to trace on a virtual GPU (profiler/capture/cuda/predicted_step.h).
struct PredictStep {
    models::Workload workload;
    int64_t gpu_index = 0;                 // the worker's CUDA device
    models::ComputeCapability capability;  // of that GPU
    int64_t warmup_steps = 1;
    bool records_kernels = true;
};

/// One worker answers any number of these, one after another.
/// Errors: a workload that CUDA cannot run, and what WorkerClient::run says.
tl::expected<Trace, ErrorFrame> request_predicted_step(WorkerClient& worker,
                                                       const PredictStep& step,
                                                       const WorkerEvents& events = {});

}  // namespace profiler
