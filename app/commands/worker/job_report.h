#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"
#include "app/commands/worker/worker_run.h"

/// What `capture` and `sweep` have in common: the jobs one after the other, then their results.
namespace app {

/// Runs the jobs of all recipes and writes a table, or a JSON row for each, with their figures.
/// The first failure ends it; files of the recipes before stay.
Outcome run_jobs(const WorkloadOptions& workload, JobKind kind, Output& output);

}  // namespace app
