#pragma once

#include "profiler/planner/search/auto_plan.h"
#include "profiler/view/plan_view.h"

#include <vector>

/// What `plan --auto` adds to a plan: the recipes among which each row chose, as typed cells.
namespace profiler {

struct FrontierView {
    std::vector<PlanColumn> columns;  // JSON keys and CSV headers
    std::vector<std::vector<PlanCell>> points;
    TextTable table;  // the ends, the chosen point with its neighbours, and some points between
};

FrontierView build_frontier_view(const std::vector<FrontierPoint>& frontier);

/// The rows of the chosen recipes.
PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request);

}  // namespace profiler
