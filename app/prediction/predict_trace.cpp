#include "app/prediction/predict_trace.h"

#include "profiler/planner/step/step_time.h"

namespace app {

using namespace profiler;

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
