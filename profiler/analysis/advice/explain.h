#pragma once

#include "models/config/result.h"
#include "profiler/analysis/advice/explanation.h"
#include "profiler/analysis/step_index.h"
#include "profiler/planner/data/planner_data.h"

/// Explains a step: what happened, what fills the memory, what is unusual, what to do.
///
///     trace --> Evidence --> rules    --> findings
///                       `--> WhatIf   --> remedies, each with the step replayed with its change
namespace profiler {

struct ExplainRequest {
    ExplainTarget target;               // what is not set is as recorded
    const PlannerData* data = nullptr;  // the catalogue of GPUs; null: the built-in one
};

/// Takes less than a second for 100,000 allocations.
/// Errors: a target that is not in the catalogue, or whose batch the trace cannot be scaled to.
models::Result<Explanation> explain(const StepIndex& steps, const ExplainRequest& request = {});

/// Adds what a trace that ends in a step does not tell of its rest. `whole` is the same program
/// where it had enough memory: from it come the peak, remedies for the GPU of `explanation`, the
/// largest batch, and what else is unusual. What happened, and what filled the memory then, stays.
/// Without a whole step in it nothing changes.
/// Errors: as explain().
models::Result<void> add_whole_step(const StepIndex& whole, const ExplainRequest& request,
                                    Explanation& explanation);

}  // namespace profiler
