#pragma once

#include "profiler/planner/search/auto_plan.h"
#include "profiler/planner/step/interpolation_cache.h"

/// One row of an automatic plan.
namespace profiler {

/// Searches, and fills a row that start_row did not refuse.
void fill_auto_row(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   InterpolationCache& interpolations);

}  // namespace profiler
