#include "app/prediction/predict_trace.h"

#include "profiler/planner/step/step_time.h"

namespace app {

using namespace profiler;

models::Result<PredictionTarget> find_target(const PlannerData& data, const std::string& gpu_id,
                                             const std::string& setup_id) {
    const auto gpu = find_gpu(data.gpus, gpu_id);
    if (!gpu) return tl::unexpected(gpu.error());
    const auto wanted = find_environment(data.environments, setup_id);
    if (!wanted) return tl::unexpected(wanted.error());
    const auto environment = environment_for(data.environments, **wanted, **gpu);
    if (!environment) return tl::unexpected(environment.error());
    return PredictionTarget{.gpu = *gpu, .environment = *environment};
}

models::Result<Trace> predict_trace(const models::Workload& workload,
                                    const PredictionTarget& target, const PlannerData& data,
                                    const StepSource& source) {
    const auto step =
        source({.workload = traced_workload(workload, *target.environment, data.calibration),
                .gpu = target.gpu});
    if (!step) return tl::unexpected(step.error());
    return place_and_schedule(**step, *target.gpu, target.allocator, data.calibration,
                              *target.environment);
}

}  // namespace app
