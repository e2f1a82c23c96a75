#include "app/prediction/virtual_cards.h"

#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/worker_process.h"

#include <algorithm>

namespace app {
namespace {

/// What changes the requests of torch's CUDA code. The planner has allocator settings of its own.
constexpr const char* kSettings[] = {
    "PYTORCH_ALLOC_CONF",        "PYTORCH_CUDA_ALLOC_CONF",    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_TUNABLEOP_ENABLED", "CUBLAS_WORKSPACE_CONFIG",    "CUBLASLT_WORKSPACE_SIZE",
    "DISABLE_ADDMM_CUDA_LT",     "TORCH_BLAS_PREFER_CUBLASLT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NVIDIA_TF32_OVERRIDE",      "CUDA_VISIBLE_DEVICES"};

}  // namespace

profiler::VirtualCard virtual_card(const profiler::Gpu& gpu) {
    return {.name = gpu.name,
            .capability = std::max(gpu.compute_capability.value_or(models::kAmpere), kOldestTraced),
            .total_bytes = kEndlessBytes,
            .sm_count = static_cast<int64_t>(gpu.sm_count.value),
            .l2_bytes = static_cast<int64_t>(gpu.l2_bytes.value)};
}

models::Result<profiler::VirtualCard> real_size_card(const PredictionTarget& target) {
    const profiler::Gpu& gpu = *target.gpu;
    if (!gpu.compute_capability) {
        return models::fail("{} does not run CUDA: choose a GPU of NVIDIA.", gpu.name);
    }
    profiler::VirtualCard card = virtual_card(gpu);
    card.total_bytes = static_cast<int64_t>(gpu.usable_memory_bytes.value);
    card.context_bytes = static_cast<int64_t>(target.environment->context_bytes(gpu.id).value);
    card.nccl_bytes = static_cast<int64_t>(target.environment->nccl_bytes.value);
    return card;
}

models::Result<profiler::WorkerClient> start_worker_on(
    const std::vector<profiler::VirtualCard>& cards) {
    if (cards.empty()) return profiler::WorkerClient::start();
    const auto program = profiler::find_worker();
    if (!program) return tl::unexpected(program.error());
    auto environment = profiler::virtual_gpu_environment(profiler::virtual_gpu_folder(), cards);
    if (!environment) return tl::unexpected(environment.error());
    // A prediction is of the GPU and the setup that were asked for, not of the user's settings.
    for (const char* name : kSettings) environment->emplace_back(name);
    return profiler::WorkerClient::start(*program, *environment);
}

const profiler::Gpu& shared_gpu() {
    return **profiler::find_gpu(profiler::built_in_planner_data().gpus, "a100-40gb");
}

}  // namespace app
