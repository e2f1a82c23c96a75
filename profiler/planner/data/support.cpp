#include "profiler/planner/data/support.h"

#include "models/config/validity.h"

#include <fmt/format.h>

namespace profiler {
namespace {

/// torch for AMD's GPUs runs CUDA's recipes but for what is NVIDIA's own.
std::optional<std::string> why_not_without_cuda(const models::Workload& workload, const Gpu& gpu) {
    if (workload.precision == models::Precision::kTf32) {
        return fmt::format("{} has no tf32, which is NVIDIA's: choose fp32 or bf16.", gpu.id);
    }
    for (const models::Recipe& recipe : models::recipes_in(workload)) {
        if (recipe.attention != models::Attention::kCudnn) continue;
        return fmt::format("{} has no cuDNN, which is NVIDIA's: choose attention=flash.", gpu.id);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu) {
    if (workload.precision == models::Precision::kFp64) {
        return "fp64 is the reference that recipes are compared in and no plan is made for it: "
               "choose another --precision.";
    }
    if (!gpu.compute_capability) {
        if (auto reason = why_not_without_cuda(workload, gpu)) return reason;
    }
    models::Workload smallest = workload;  // how large a batch may be is asked later
    smallest.batch_size = 1;
    const auto ok =
        models::validate_for_prediction(smallest, gpu.compute_capability.value_or(models::kAmpere));
    return ok ? std::nullopt : std::optional(ok.error().message);
}

std::string why_not_comparable(models::Attention attention, const Gpu& gpu,
                               const Calibration& calibration) {
    if (attention == models::Attention::kCudnn) {
        return "nothing measured says how fast cuDNN's attention is: it takes flash attention's "
               "time, "
               "and its workspace is missing";
    }
    if (attention != models::Attention::kEfficient) return {};
    const auto row_of = [&](KernelKind kernel) {
        return last_row_about(calibration.efficiencies, gpu.id,
                              [&](const EfficiencyRow& row) { return row.kernel == kernel; });
    };
    // A share of the peak that was measured on another generation says nothing beside one of this.
    const EfficiencyRow* flash = row_of(KernelKind::kFlashAttention);
    const EfficiencyRow* efficient = row_of(KernelKind::kEfficientAttention);
    const bool has_own_flash = flash != nullptr && !flash->gpus.empty();
    if (!has_own_flash || (efficient != nullptr && !efficient->gpus.empty())) return {};
    return fmt::format(
        "the efficient attention's rate was measured on another generation of GPUs than {}, flash "
        "attention's on its own: their times do not compare",
        gpu.id);
}

std::vector<models::Recipe> supported_recipes(std::vector<models::Recipe> recipes,
                                              const models::Workload& workload, const Gpu& gpu) {
    models::Workload uniform = workload;
    std::erase_if(recipes, [&](const models::Recipe& recipe) {
        uniform.recipe = recipe;
        return why_not_supported(uniform, gpu).has_value();
    });
    return recipes;
}

}  // namespace profiler
