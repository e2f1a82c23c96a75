#include "app/prediction/virtual_cards.h"

#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/worker_process.h"

#include <algorithm>

namespace app {
namespace {

using namespace profiler;

/// What changes the requests of torch's CUDA code. The planner has allocator settings of its own.
constexpr const char* kSettings[] = {
    "PYTORCH_ALLOC_CONF",        "PYTORCH_CUDA_ALLOC_CONF",    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_TUNABLEOP_ENABLED", "CUBLAS_WORKSPACE_CONFIG",    "CUBLASLT_WORKSPACE_SIZE",
    "DISABLE_ADDMM_CUDA_LT",     "TORCH_BLAS_PREFER_CUBLASLT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NVIDIA_TF32_OVERRIDE",      "CUDA_VISIBLE_DEVICES"};

}  // namespace

VirtualCard virtual_card(const Gpu& gpu) {
    return {.name = gpu.name,
            .capability = std::max(gpu.compute_capability.value_or(models::kAmpere), kOldestTraced),
            .total_bytes = kEndlessBytes,
            .sm_count = static_cast<int64_t>(gpu.sm_count.value),
            .l2_bytes = static_cast<int64_t>(gpu.l2_bytes.value)};
}

models::Result<WorkerClient> start_worker_on(const std::vector<VirtualCard>& cards) {
    if (cards.empty()) return WorkerClient::start();
    const auto program = find_worker();
    if (!program) return tl::unexpected(program.error());
    auto environment = virtual_gpu_environment(virtual_gpu_folder(), cards);
    if (!environment) return tl::unexpected(environment.error());
    // A prediction is of the GPU and the setup that were asked for, not of the user's settings.
    for (const char* name : kSettings) environment->emplace_back(name);
    return WorkerClient::start(*program, *environment);
}

const Gpu& shared_gpu() { return **find_gpu(built_in_planner_data().gpus, "a100-40gb"); }

}  // namespace app
