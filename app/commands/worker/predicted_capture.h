#pragma once

#include "app/commands/console/outcome.h"
#include "app/user/workload_jobs.h"

#include <string>
#include <vector>

/// `capture --device predict:GPU`: traces of steps as a GPU would run them, without the GPU.
namespace app {

/// Writes the predicted trace of each job on `gpu` under `environment`, a software environment.
/// Errors: an unknown GPU or environment, a workload that the GPU cannot run, errors of the worker.
tl::expected<void, Failure> capture_predicted(const std::vector<Job>& jobs, const std::string& gpu,
                                              const std::string& environment);

}  // namespace app
