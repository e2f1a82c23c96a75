#pragma once

#include "models/config/compute_capability.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/protocol/worker_client.h"

#include <vector>

/// The virtual GPUs on which steps are traced.
namespace app {

/// The oldest generation that torch 2.11 has code for. Older GPUs are traced as this one.
inline constexpr models::ComputeCapability kOldestTraced{7, 5};

/// Of a GPU whose memory does not end.
inline constexpr int64_t kEndlessBytes = int64_t{1} << 40;

/// `gpu` with memory without end: the step is placed into the GPU's own memory afterwards. A GPU
/// that is not CUDA's counts as an A100's generation.
profiler::VirtualCard virtual_card(const profiler::Gpu& gpu);

/// A worker that finds `cards` as its CUDA devices; with none, those of this machine.
models::Result<profiler::WorkerClient> start_worker_on(
    const std::vector<profiler::VirtualCard>& cards);

/// The GPU whose traces serve all GPUs of a large plan, an A100. docs/prediction.md lists what
/// differs on others. The size of the cuBLAS workspaces is in profiler::MemoryOptions.
const profiler::Gpu& shared_gpu();

}  // namespace app
