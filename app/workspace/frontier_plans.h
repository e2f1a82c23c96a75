#pragma once

#include "app/prediction/predictor.h"
#include "app/prediction/recent.h"
#include "app/workspace/jobs/job_queue.h"
#include "profiler/planner/search/step_recipes.h"
#include "profiler/view/plan/recipe_frontier_view.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace app {

/// The recipes of a step, and the plans so far.
struct RecipePlans {
    profiler::StepToTrace step;        // its recipe is only the optimizer
    std::vector<std::string> recipes;  // canonical, each once
    std::size_t num_presets = 0;       // they stand first
    std::vector<std::string> asked;    // of `recipes`: planned, or being planned
    std::vector<profiler::RefusedRecipe> refused;
    std::shared_ptr<const profiler::Plan> plan;  // of the planned recipes
    std::string error;
    bool has_more_on_top = false;  // `recipes` has what comes on top of the best ones
    bool is_complete = false;
};

/// Plans every recipe of a step, a few at a time on a background thread, and then what the search
/// tries on top of the best ones. The plans of the last steps are kept. All
/// plans take half a minute; meanwhile the panel shows the finished plans.
class FrontierPlans {
public:
    explicit FrontierPlans(Predictor& predictor) : predictor_(predictor) {}
    ~FrontierPlans() { queue_.cancel(); }

    /// Once a frame: takes what was planned. Plans more recipes of the step, with its optimizer,
    /// only if `may_start`: first the named recipes, then the presets, then the neighbours of the
    /// named recipes. Returns true when one of the following has changed.
    bool update(const StepPlanRequest& request, bool may_start);

    /// The plans so far; null before the first request.
    std::shared_ptr<const profiler::Plan> plan() const {
        return current_ ? current_->plan : nullptr;
    }
    std::size_t num_planned() const { return current_ ? current_->plan->rows.size() : 0; }
    std::size_t num_recipes() const { return current_ ? current_->recipes.size() : 0; }
    bool is_complete() const { return current_ && current_->is_complete; }
    /// Presets that cannot be planned on the GPU.
    std::span<const profiler::RefusedRecipe> refused() const {
        if (!current_) return {};
        return current_->refused;
    }
    /// Why nothing can be planned; else empty.
    std::string error() const { return current_ ? current_->error : std::string(); }
    const std::vector<profiler::Gpu>& gpus() const { return predictor_.gpus(); }

private:
    struct Chunk {
        profiler::StepToTrace step;
        models::Result<profiler::Plan> plan;
    };

    void choose(const StepPlanRequest& request);
    void add_first(const StepPlanRequest& request);
    void add_on_top_of_best();
    std::vector<std::string> open_recipes(const StepPlanRequest& request) const;
    bool take();
    void start_next(const StepPlanRequest& request);

    Predictor& predictor_;
    Recent<profiler::StepToTrace, std::shared_ptr<RecipePlans>> kept_{8};
    std::shared_ptr<RecipePlans> current_;
    JobQueue<Chunk> queue_{Waiting::kKeep};
};

}  // namespace app
