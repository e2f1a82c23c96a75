#pragma once

#include "app/commands/console/outcome.h"
#include "app/user/workload_jobs.h"

#include <string>

/// `capture --device predict:GPU`: traces of steps as a GPU would run them, without the GPU.
namespace app {

/// Checks the jobs of a list with a GPU before anything is made or run, and leaves out of `all`
/// what the GPU cannot run. Errors: an unknown GPU or environment, a workload that the GPU cannot
/// run.
tl::expected<void, Failure> check_predicted(JobList& list, const std::string& environment);

/// Writes the predicted trace of each job on the GPU of the list under `environment`, a software
/// environment. A step that does not fit is written as on a larger GPU. Errors: an unknown GPU or
/// environment, errors of the worker.
tl::expected<OutOfMemoryJobs, Failure> capture_predicted(const JobList& list,
                                                         const std::string& environment);

}  // namespace app
