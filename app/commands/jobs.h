#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"
#include "app/user/workload_jobs.h"

#include <cstdint>
#include <string>

/// The common part of `capture` and `sweep`: run all recipes in `temposcope-worker`, the program
/// that links libtorch, then show their results.
namespace app {

enum class MeasureKind : uint8_t { kCapture, kSweep };

/// Measures or predicts all recipes and writes a table with their figures, or a JSON row for each.
/// Recipes that run out of memory are results among others, and the exit code says so. After
/// another failure no other recipe starts; the files of finished recipes stay.
Outcome run_jobs(const StepForm& workload, MeasureKind kind, Output& output);

/// Checks the jobs of a list with a GPU before anything is made or run, and leaves out of `all`
/// what the GPU cannot run. Errors: an unknown GPU or environment, a workload that the GPU cannot
/// run.
tl::expected<void, Failure> check_predicted(JobList& list, const std::string& environment);

}  // namespace app
