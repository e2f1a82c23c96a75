#pragma once

#include "profiler/planner/plan.h"
#include "profiler/view/compare_view.h"

namespace profiler {

/// Adds what a plan of one step on one GPU says where no file says anything: a column for each
/// recipe that no column has, and the memory of recipes of which there is only a sweep. Adds
/// nothing if the columns are of several steps.
void add_planned_columns(Comparison& comparison, const Plan& plan);

/// Adds what a plan says about the recipes of a comparison: its rows are of the first step of the
/// comparison, on one GPU. Columns of other steps, and those of which the plan has no row, stay
/// without.
void add_plan(CompareView& view, const Comparison& comparison, const Plan& plan);

}  // namespace profiler
