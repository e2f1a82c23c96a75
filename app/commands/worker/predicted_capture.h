#pragma once

#include "app/commands/console/outcome.h"
#include "app/user/workload_jobs.h"
#include "profiler/allocator/settings.h"
#include "profiler/planner/step/batch_interpolation.h"

#include <string>

/// `capture --device predict:GPU`: traces of steps as a GPU would run them, without the GPU.
namespace app {

/// Checks the jobs of a list with a GPU before anything is made or run, and leaves out of `all`
/// what the GPU cannot run. Errors: an unknown GPU or environment, a workload that the GPU cannot
/// run.
tl::expected<void, Failure> check_predicted(JobList& list, const std::string& environment);

/// Writes the predicted trace of each job on the GPU of the list under `environment`, a software
/// environment. Errors: an unknown GPU or environment, errors of the worker.
tl::expected<void, Failure> capture_predicted(const JobList& list, const std::string& environment);

/// A GPU and what is assumed around it.
struct PredictionTarget {
    const profiler::Gpu* gpu = nullptr;
    const profiler::SoftwareEnvironment* environment = nullptr;
    profiler::AllocatorSettings allocator = {};
};

/// The step as the GPU would record it. `source` traces with TraceDetail::kForCapture.
/// Errors: of the source, of place_and_schedule.
models::Result<profiler::Trace> predict_trace(const models::Workload& workload,
                                              const PredictionTarget& target,
                                              const profiler::PlannerData& data,
                                              const profiler::StepSource& source);

}  // namespace app
