#include "profiler/planner/support.h"

#include <fmt/format.h>

namespace profiler {
namespace {

/// torch for AMD's cards runs CUDA's recipes but for what is NVIDIA's own.
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
        models::validate_for_cuda(smallest, gpu.compute_capability.value_or(models::kAmpere));
    return ok ? std::nullopt : std::optional(ok.error().message);
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
