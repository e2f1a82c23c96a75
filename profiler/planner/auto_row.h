#pragma once

#include "profiler/planner/auto_plan.h"
#include "profiler/planner/step_family.h"

/// One cell of an automatic plan.
namespace profiler {

/// Searches and fills a row that start_row left ok. `family`: of the workload's own recipe.
void fill_auto_row(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   const MetaTraceSource& source, StepFamily& family);

}  // namespace profiler
