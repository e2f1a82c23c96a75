#include "profiler/planner/data/gpu_support.h"

#include "models/config/validity.h"

#include <fmt/format.h>

namespace profiler {
namespace {

/// PyTorch for AMD GPUs runs the same recipes, except for what only NVIDIA has.
models::Result<void> check_without_cuda(const models::Workload& workload, const Gpu& gpu) {
    if (workload.precision == models::Precision::kTf32) {
        return models::fail_fields(
            {"precision"}, "{} has no tf32, which only NVIDIA GPUs have: choose fp32 or bf16.",
            gpu.id);
    }
    for (const models::Recipe& recipe : models::recipes_in(workload)) {
        if (recipe.attention != models::Attention::kCudnn) continue;
        return models::fail_fields(
            {"recipe"}, "{} has no cuDNN, which only NVIDIA GPUs have: choose attention=flash.",
            gpu.id);
    }
    return {};
}

}  // namespace

models::Result<void> check_gpu_support(const models::Workload& workload, const Gpu& gpu) {
    if (workload.precision == models::Precision::kFp64) {
        return models::fail_fields(
            {"precision"},
            "fp64 only serves as the reference for comparing recipes, so there "
            "is no plan for it: choose another precision.");
    }
    if (!gpu.compute_capability) {
        if (auto ok = check_without_cuda(workload, gpu); !ok) return ok;
    }
    models::Workload smallest = workload;  // the plan finds the largest batch
    smallest.batch_size = 1;
    return models::validate_for_prediction(smallest,
                                           gpu.compute_capability.value_or(models::kAmpere));
}

std::string why_not_comparable(models::Attention attention, const Gpu& gpu,
                               const Calibration& calibration) {
    if (attention == models::Attention::kCudnn) {
        return "cuDNN's attention gets flash attention's time, because its own is not calibrated";
    }
    if (attention != models::Attention::kEfficient) return {};
    const auto row_of = [&](KernelKind kernel) {
        return last_row_about(calibration.efficiencies, gpu.id,
                              [&](const EfficiencyRow& row) { return row.kernel == kernel; });
    };
    // Rates measured on different generations of GPUs do not compare.
    const EfficiencyRow* flash = row_of(KernelKind::kFlashAttention);
    const EfficiencyRow* efficient = row_of(KernelKind::kEfficientAttention);
    const bool has_own_flash = flash != nullptr && !flash->gpus.empty();
    if (!has_own_flash || (efficient != nullptr && !efficient->gpus.empty())) return {};
    return fmt::format(
        "efficient attention was measured on another generation of GPUs than {}, flash attention "
        "on the same: do not compare their times",
        gpu.id);
}

std::vector<models::Recipe> supported_recipes(std::vector<models::Recipe> recipes,
                                              const models::Workload& workload, const Gpu& gpu) {
    models::Workload uniform = workload;
    std::erase_if(recipes, [&](const models::Recipe& recipe) {
        uniform.recipe = recipe;
        return !check_gpu_support(uniform, gpu);
    });
    return recipes;
}

}  // namespace profiler
