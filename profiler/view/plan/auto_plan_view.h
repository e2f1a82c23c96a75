#pragma once

#include "profiler/planner/search/auto_plan.h"
#include "profiler/view/plan/plan_view.h"

#include <vector>

/// What `plan --auto` adds to a plan: the recipes among which each row chose.
namespace profiler {

/// JSON keys and CSV headers.
const std::vector<TableColumn<FrontierPoint>>& frontier_columns();

/// The ends, the chosen point with its neighbours, and some points between.
TextTable frontier_table(const std::vector<FrontierPoint>& frontier);

/// The rows of the chosen recipes.
PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request);

}  // namespace profiler
