#pragma once

#include "profiler/planner/search/auto_plan.h"
#include "profiler/planner/step/batch_interpolation.h"

/// One cell of an automatic plan.
namespace profiler {

/// Searches and fills a row that start_row left ok. `family`: of the workload's own recipe.
void fill_auto_row(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   const MetaTraceSource& source, BatchInterpolation& interpolation);

}  // namespace profiler
