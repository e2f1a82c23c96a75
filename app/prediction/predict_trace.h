#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/trace/trace.h"

#include <string>

namespace app {

/// The software environment that is assumed where the user names none: Temposcope is built with it.
inline constexpr const char* kUsualSetup = "torch-2.11";

/// A GPU and what is assumed around it.
struct PredictionTarget {
    const profiler::Gpu* gpu = nullptr;
    const profiler::SoftwareEnvironment* environment = nullptr;
    profiler::AllocatorSettings allocator = {};
};

/// The GPU and the software environment of these ids. If the environment's PyTorch does not run on
/// the GPU, another environment stands in. The result points into `data`. Errors: unknown ids.
models::Result<PredictionTarget> find_target(const profiler::PlannerData& data,
                                             const std::string& gpu_id,
                                             const std::string& setup_id);

/// The step as the GPU would record it. `source` traces with TraceDetail::kForCapture.
/// Errors: of the source, of place_and_schedule.
models::Result<profiler::Trace> predict_trace(const models::Workload& workload,
                                              const PredictionTarget& target,
                                              const profiler::PlannerData& data,
                                              const profiler::StepSource& source);

}  // namespace app
