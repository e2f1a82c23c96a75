#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/document.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/view/programs/compare_view.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The comparison of all open traces, with what is planned for them.
namespace app {

/// The usual recipes that no open file has, planned for the step of the open ones.
struct UsualPlan {
    StepPlanRequest request;
    profiler::Plan plan;  // no rows if it could not be made
};

/// All open documents, and the GPU for which their recipes are planned. The request owns the
/// documents, so that the old comparison stays on the screen while a file is added or closed.
struct CompareRequest {
    std::vector<DocumentPtr> documents;
    std::string gpu;                         // its id
    std::shared_ptr<const UsualPlan> usual;  // may be of another step or GPU, or null

    friend bool operator==(const CompareRequest&, const CompareRequest&) = default;
};
struct CompareResult {
    profiler::Comparison comparison;
    profiler::CompareView view;
    /// What to plan so that the usual recipes stand beside the open ones; empty: nothing.
    std::optional<StepPlanRequest> usual;
};
/// With what is known already of the plan of the first step: what would fit on the chosen GPU, and
/// how fast it would be.
models::Result<CompareResult> build_comparison(Predictor& predictor, const CompareRequest& request);

/// The same with the whole plan. Recipes that were not planned before take some tenths of a second,
/// so the comparison comes before it.
models::Result<CompareResult> build_planned_comparison(Predictor& predictor,
                                                       const CompareRequest& request,
                                                       const Predictor::Report& report);

UsualPlan build_usual_plan(Predictor& predictor, const StepPlanRequest& request,
                           const Predictor::Report& report);

}  // namespace app
