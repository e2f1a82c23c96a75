#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"
#include "app/commands/worker/worker_run.h"

/// The common part of `capture` and `sweep`: run all recipes, then show their results.
namespace app {

/// Measures or predicts all recipes and writes a table with their figures, or a JSON row for each.
/// Recipes that run out of memory are results among others, and the exit code says so. After
/// another failure no other recipe starts; the files of finished recipes stay.
Outcome run_and_report(const WorkloadOptions& workload, MeasureKind kind, Output& output);

}  // namespace app
