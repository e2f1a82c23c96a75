#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/job_queue.h"
#include "profiler/planner/search/step_recipes.h"
#include "profiler/view/recipe_frontier_view.h"

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace app {

/// The step and the GPU whose recipes are planned, and which of them come first.
struct FrontierWish {
    PlanQuestion step;  // without recipes and batch
    models::Optimizer optimizer = models::Optimizer::kAdamW;
    std::vector<std::string> first;  // canonical; then come the presets, then what is near these

    friend bool operator==(const FrontierWish&, const FrontierWish&) = default;
};

/// Plans every recipe of a step, a few at a time on a background thread, and then what the search
/// tries on top of the best ones. Keeps the plans of the last steps. Planning all of them takes
/// half a minute; meanwhile the panel shows those it has.
class FrontierPlans {
public:
    explicit FrontierPlans(Predictor& predictor) : predictor_(predictor) {}
    ~FrontierPlans() { queue_.cancel(); }

    /// Once a frame: takes what was planned. Plans more of the wish only if `may_start`. Returns
    /// true when one of the following has changed.
    bool update(const FrontierWish& wish, bool may_start);

    using Steps = profiler::FrontierRequest::Steps;
    /// The plans of the wish so far; null before the first wish.
    Steps steps() const { return current_ ? current_->steps : nullptr; }
    std::size_t num_planned() const { return steps() ? steps()->size() : 0; }
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
    struct Set {
        PlanQuestion step;
        models::Optimizer optimizer;
        std::vector<std::string> recipes;  // canonical, each once
        std::size_t num_presets = 0;       // they stand first
        std::vector<std::string> asked;    // those of them that were or are being planned
        std::vector<profiler::RefusedRecipe> refused;
        Steps steps;
        std::string error;
        bool has_more_on_top = false;  // `recipes` has what comes on top of the best ones
        bool is_complete = false;
    };
    struct Chunk {
        PlanQuestion question;  // with its recipes
        models::Optimizer optimizer;
        models::Result<std::vector<profiler::PlannedStep>> steps;
    };

    void choose(const FrontierWish& wish);
    void add_first(const FrontierWish& wish);
    void add_on_top_of_best();
    std::vector<std::string> open_recipes(const FrontierWish& wish) const;
    bool take();
    void start_next(const FrontierWish& wish);

    Predictor& predictor_;
    std::list<Set> sets_;     // the newest first
    Set* current_ = nullptr;  // of sets_
    JobQueue<Chunk> queue_{Waiting::kKeep};
};

}  // namespace app
