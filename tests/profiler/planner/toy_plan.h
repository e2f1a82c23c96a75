#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "profiler/planner/plan.h"
#include "tests/profiler/planner/toy_step.h"

/// Plans of toy steps on GPUs of the catalogue.
namespace tests {

inline const profiler::PlannerData& data() { return profiler::built_in_planner_data(); }
inline const profiler::Gpu* gpu_named(std::string_view id) {
    return *profiler::find_gpu(data().gpus, id);
}
inline const profiler::SoftwareEnvironment* environment_named(std::string_view id) {
    return *profiler::find_environment(data().environments, id);
}

inline models::Workload with_recipe(const std::string& recipe) {
    return models::with_recipe(toy_workload(), recipe).value();
}

inline profiler::PlanRequest request_for(std::vector<std::string> recipes,
                                         std::vector<std::string> gpus) {
    profiler::PlanRequest request{.environment = environment_named("torch-2.11")};
    for (const std::string& recipe : recipes) request.workloads.push_back(with_recipe(recipe));
    for (const std::string& gpu : gpus) request.gpus.push_back(gpu_named(gpu));
    return request;
}

inline profiler::PlanRequest request_on(std::vector<std::string> recipes,
                                        const profiler::Gpu& gpu) {
    profiler::PlanRequest request = request_for(std::move(recipes), {});
    request.gpus = {&gpu};
    return request;
}

/// Makes toy steps, and tells of each before, one at a time.
inline profiler::StepSource noting_source(std::function<void(const profiler::StepToTrace&)> tell) {
    return [tell = std::move(tell),
            mutex = std::make_shared<std::mutex>()](const profiler::StepToTrace& step) {
        const std::lock_guard lock(*mutex);
        tell(step);
        return toy_source()(step);
    };
}

inline profiler::Plan plan(const profiler::PlanRequest& request, const ToyOptions& options = {}) {
    return profiler::make_plan(request, data(), toy_source(options));
}

/// A GPU of its own size.
inline profiler::Gpu small_gpu(int64_t usable_bytes) {
    profiler::Gpu gpu = *gpu_named("a100-80gb");
    gpu.id = "small";
    gpu.usable_memory_bytes.value = static_cast<double>(usable_bytes) +
                                    environment_named("torch-2.11")->context_bytes("small").value;
    return gpu;
}

}  // namespace tests
