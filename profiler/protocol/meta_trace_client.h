#pragma once

#include "models/config/compute_capability.h"
#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/trace.h"

namespace profiler {

/// Asks the worker what one training step of `workload` asks of a GPU's memory: a MetaTrace
/// (profiler/capture/meta/capture.h; docs/prediction.md). One worker answers any number of these,
/// one after another; what a MetaTrace depends on is the workload and the compute capability.
/// Errors: a workload that CUDA cannot run, and what WorkerClient::run says.
tl::expected<Trace, ErrorFrame> request_meta_trace(WorkerClient& worker,
                                                   const models::Workload& workload,
                                                   models::ComputeCapability capability,
                                                   const WorkerEvents& events = {});

}  // namespace profiler
