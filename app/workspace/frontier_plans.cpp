#include "app/workspace/frontier_plans.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "models/config/validity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace app {
namespace {

/// Planned at once: as many threads as a plan uses. More would only delay the first dots.
constexpr std::size_t kChunk = 4;
/// If so many recipes are refused and none is planned, the rest would be refused too.
constexpr std::size_t kMostRefused = 8;

bool contains(const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool is_valid(models::Workload workload, const std::string& recipe) {
    workload.batch_size = 1;
    const auto with = models::with_recipe(std::move(workload), recipe);
    return with && models::validate(*with);
}

std::optional<models::Recipe> recipe_of(const std::string& text) {
    const auto parsed = models::parse_layer_recipes(text);
    return parsed ? std::optional(parsed->recipe) : std::nullopt;
}

/// In how many switches two recipes differ.
int distance(const models::Recipe& a, const models::Recipe& b) {
    int distance = 0;
    models::for_each_switch([&](const auto& table) {
        if (a.*table.member != b.*table.member) ++distance;
    });
    return distance;
}

/// The recipes of `texts` that are nearest to one of `near` come first.
void sort_by_distance(std::vector<std::string>& texts, const std::vector<std::string>& near) {
    std::vector<models::Recipe> others;
    for (const std::string& text : near) {
        if (const auto recipe = recipe_of(text)) others.push_back(*recipe);
    }
    std::vector<std::pair<int, std::string>> ranked;
    for (std::string& text : texts) {
        int least = std::numeric_limits<int>::max();
        if (const auto recipe = recipe_of(text)) {
            for (const auto& other : others) least = std::min(least, distance(other, *recipe));
        }
        ranked.emplace_back(least, std::move(text));
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    texts.clear();
    for (auto& [least, text] : ranked) texts.push_back(std::move(text));
}

/// Recipes that no other one beats at some batch, in peak and in throughput.
std::vector<models::Recipe> best_of(const std::shared_ptr<const profiler::Plan>& plan) {
    int64_t last = 0;
    for (const profiler::PlanRow& row : plan->rows) {
        last = std::max(last, row.max_batch_size.value_or(0));
    }
    std::vector<models::Recipe> best;
    for (int64_t batch_size = 1; batch_size <= last; batch_size *= 4) {
        const auto view =
            profiler::build_recipe_frontier_view({.planned = plan, .batch_size = batch_size});
        for (const std::size_t dot : view.frontier) {
            const auto recipe = recipe_of(view.dots[dot].recipe);
            if (recipe && std::find(best.begin(), best.end(), *recipe) == best.end()) {
                best.push_back(*recipe);
            }
        }
    }
    return best;
}

profiler::StepToTrace step_of(const StepPlanRequest& request) {
    return {request.workload, request.gpu};
}

bool any_runs(const profiler::Plan& plan) {
    return std::any_of(plan.rows.begin(), plan.rows.end(), [](const profiler::PlanRow& row) {
        return row.max_batch_size.value_or(0) > 0 && profiler::has_times(row);
    });
}

}  // namespace

bool FrontierPlans::update(const StepPlanRequest& request, bool may_start) {
    const bool taken = take();
    const auto before = current_;
    choose(request);
    if (may_start && !queue_.busy()) start_next(request);
    return taken || current_ != before;
}

/// The plans of this step: kept ones, or new ones.
void FrontierPlans::choose(const StepPlanRequest& request) {
    const profiler::StepToTrace step = step_of(request);
    if (current_ && current_->step == step) return add_first(request);
    queue_.cancel();
    current_ = kept_.find(step).value_or(nullptr);
    if (!current_) {
        current_ = std::make_shared<RecipePlans>(RecipePlans{.step = step});
        kept_.add(step, current_);
        RecipePlans& set = *current_;
        set.plan = std::make_shared<const profiler::Plan>();
        const auto gpu = profiler::find_gpu(gpus(), step.gpu);
        if (!gpu) {
            set.error = gpu.error().message;
        } else if (!(*gpu)->no_kernel_model.empty()) {
            set.error = fmt::format("Times on {} are not predicted: {}.", (*gpu)->name,
                                    (*gpu)->no_kernel_model);
        } else {
            auto all =
                profiler::recipes_of_a_step(step.workload, **gpu, predictor_.data().calibration);
            set.num_presets = all.num_presets;
            for (const auto& recipe : all.recipes) set.recipes.push_back(models::to_text(recipe));
            set.refused = std::move(all.refused);
        }
    }
    // What was on its way when the step was left comes again.
    current_->asked.clear();
    for (const profiler::PlanRow& row : current_->plan->rows) {
        current_->asked.push_back(profiler::recipe_text(row));
    }
    add_first(request);
}

/// Adds recipes of open traces that the list lacks, such as a recipe that differs by layer.
void FrontierPlans::add_first(const StepPlanRequest& request) {
    for (const std::string& recipe : request.recipes) {
        if (contains(current_->recipes, recipe) || !is_valid(request.workload, recipe)) continue;
        current_->recipes.push_back(recipe);
        current_->is_complete = false;
    }
}

/// The recipes without a plan: first the named recipes, then the presets, then the nearest
/// neighbours of the named recipes.
std::vector<std::string> FrontierPlans::open_recipes(const StepPlanRequest& request) const {
    std::vector<std::string> named, presets, others;
    for (std::size_t i = 0; i < current_->recipes.size(); ++i) {
        const std::string& recipe = current_->recipes[i];
        if (contains(current_->asked, recipe)) continue;
        const bool is_named = contains(request.recipes, recipe);
        (is_named ? named : i < current_->num_presets ? presets : others).push_back(recipe);
    }
    sort_by_distance(others, request.recipes);
    named.insert(named.end(), presets.begin(), presets.end());
    named.insert(named.end(), others.begin(), others.end());
    return named;
}

/// Once, when all recipes of the step are planned.
void FrontierPlans::add_on_top_of_best() {
    if (std::exchange(current_->has_more_on_top, true)) return;
    const auto gpu = profiler::find_gpu(gpus(), current_->step.gpu);
    if (!gpu) return;
    const auto more =
        profiler::recipes_on_top_of(best_of(current_->plan), current_->step.workload, **gpu);
    for (const models::Recipe& recipe : more) {
        std::string text = models::to_text(recipe);
        if (!contains(current_->recipes, text)) current_->recipes.push_back(std::move(text));
    }
}

void FrontierPlans::start_next(const StepPlanRequest& request) {
    if (current_->is_complete || !current_->error.empty()) return;
    std::vector<std::string> next = open_recipes(request);
    if (next.empty()) {
        current_->is_complete = true;
        return;
    }
    next.resize(std::min(next.size(), kChunk));
    current_->asked.insert(current_->asked.end(), next.begin(), next.end());
    StepPlanRequest chunk = request;
    chunk.recipes = std::move(next);
    queue_.start("Planning the recipes", [&predictor = predictor_, chunk](const auto&) {
        return models::Result<Chunk>({step_of(chunk), predictor.plan(chunk)});
    });
}

bool FrontierPlans::take() {
    auto results = queue_.take();
    for (models::Result<Chunk>& result : results) {
        if (!current_) continue;
        if (!result) {  // the job threw
            current_->error = result.error().message;
            continue;
        }
        if (result->step != current_->step) continue;
        if (!result->plan) {
            current_->error = result->plan.error().message;
            continue;
        }
        profiler::Plan all = *current_->plan;
        for (profiler::PlanRow& row : result->plan->rows) all.rows.push_back(std::move(row));
        if (all.rows.size() >= kMostRefused && !any_runs(all)) {
            const std::string& why = all.rows.front().reason;
            current_->error = why.empty() ? "There is no model of the times of this step." : why;
        }
        current_->plan = std::make_shared<const profiler::Plan>(std::move(all));
        if (num_planned() < num_recipes()) continue;
        add_on_top_of_best();
        current_->is_complete = num_planned() >= num_recipes();
    }
    return !results.empty();
}

}  // namespace app
