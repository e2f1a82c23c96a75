#pragma once

#include "app/prediction/recent.h"
#include "models/config/result.h"
#include "profiler/planner/plan.h"
#include "profiler/planner/step/batch_interpolation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace app {

struct Document;     // app/workspace/document.h
struct RecipePlans;  // app/workspace/frontier_plans.h

/// What was predicted and planned lately. The predictor owns the store, and all that ask the
/// predictor share it. The key is the step: the workload with its recipe, and the id of the GPU.
/// Any thread.
struct PredictionStore {
    template <typename Value>
    using Kept = Recent<profiler::StepToTrace, Value>;

    /// The steps that plans traced; some megabytes each.
    Kept<std::shared_ptr<const profiler::Trace>> traces{64};

    /// Rows that fit their GPU; some kilobytes each. They depend on nothing else, while the advice
    /// in other rows depends on the whole plan. A step has a few hundred recipes. The batch of the
    /// key is the one whose figures were asked for; 0: the largest that fits.
    Kept<profiler::PlanRow> rows{1024};

    /// Predicted steps as the window opens them, or why they cannot be predicted; some megabytes
    /// each.
    Kept<models::Result<std::shared_ptr<const Document>>> documents{48};

    /// The plans of all recipes of a step. Only one thread reads and fills them.
    Kept<std::shared_ptr<RecipePlans>> recipe_plans{8};

    /// By recipe: what it changes in the peak of the step that the window shows; nullopt: not
    /// known. LookAhead clears them when one of them may have changed. The window asks for each
    /// button in each frame, and to find an answer takes 80 µs.
    Recent<std::string, std::optional<int64_t>> peak_changes{256};
};

}  // namespace app
