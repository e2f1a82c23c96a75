#pragma once

#include "app/commands/console/outcome.h"
#include "app/user/workload_jobs.h"

#include <string>
#include <vector>

/// `capture --device predict:GPU`: the step as a GPU would run it that is not here.
namespace app {

/// Writes the trace of each job as `gpu` would have given it under `setup`.
/// Errors: an unknown GPU or setup, a workload that the GPU cannot run, what the worker says.
tl::expected<void, Failure> capture_predicted(const std::vector<Job>& jobs, const std::string& gpu,
                                              const std::string& setup);

}  // namespace app
