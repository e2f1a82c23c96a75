#pragma once

#include "profiler/planner/plan.h"
#include "profiler/planner/step/interpolation_cache.h"

/// What would fit in place of a row that does not: another recipe, or ZeRO.
namespace profiler {

/// Appends a sentence to the reason of each row that does not fit. It names, in this order:
///
///     a recipe of the plan that fits on the same GPU
///     checkpointing, or another recipe that saves much memory
///     a stage of ZeRO on the GPUs of the request
///     SGD, which has no optimizer state but trains differently
void add_advice(Plan& plan, const PlanRequest& request, const PlannerData& data,
                InterpolationCache& interpolations);

}  // namespace profiler
