#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/reports/auto_search_report.h"
#include "app/user/workload_jobs.h"

#include <string>
#include <vector>

/// `sweep --auto`: searches for the recipe that trains fastest within a memory limit, by
/// AutoTempo's two searches over real steps and by the planner's over predicted ones.
namespace app {

/// Of --auto. Errors: a name that is no mode.
models::Result<std::vector<std::string>> search_modes(const std::string& list);

/// Runs each mode on the same workload, and measures what they chose against each other. `options`
/// names two recipes, from which and to which layers move; `modes` are of search_modes. A mode that
/// is not possible is a row that says why.
tl::expected<AutoSearchReport, Failure> search_recipes(const WorkloadOptions& options,
                                                       const std::vector<std::string>& modes);

}  // namespace app
