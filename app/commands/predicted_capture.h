#pragma once

#include "app/commands/outcome.h"
#include "app/workload_jobs.h"

#include <string>
#include <vector>

/// `capture --device predict:GPU`: the step as a card would run it that is not here.
namespace app {

/// Writes the trace of each job as `gpu` would have given it under `setup`.
/// Errors: an unknown card or setup, a workload that the card cannot run, what the worker says.
tl::expected<void, Failure> capture_predicted(const std::vector<Job>& jobs, const std::string& gpu,
                                              const std::string& setup);

}  // namespace app
