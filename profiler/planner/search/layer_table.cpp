#include "profiler/planner/search/layer_table.h"

#include "models/config/switches.h"
#include "profiler/planner/data/gpu_support.h"

#include <utility>

namespace profiler {
namespace {

using models::Recipe;

/// `recipe` with every combination of the values that each switch of a layer has itself or that
/// the search tries in this place.
std::vector<Recipe> combinations(const Recipe& recipe, models::Search place) {
    std::vector<Recipe> recipes{recipe};
    models::for_each_switch([&](const auto& table) {
        if (table.is_for_step) return;
        std::vector<Recipe> all;
        for (const Recipe& base : recipes) {
            for (const auto& [value, is] : table.rows) {
                if (is.search != place && value != recipe.*table.member) continue;
                all.push_back(base);
                all.back().*table.member = value;
            }
        }
        recipes = std::move(all);
    });
    return recipes;
}

models::Workload with_layers(models::Workload workload, const std::vector<Recipe>& recipes) {
    std::vector<Recipe> layers{workload.recipe};
    layers.insert(layers.end(), recipes.begin(), recipes.end());
    layers.push_back(workload.recipe);
    for (const Recipe& recipe : recipes) {
        if (recipe.implementation == models::Implementation::kPublished) {
            workload.recipe.implementation = recipe.implementation;
        }
    }
    workload.model.num_layers = static_cast<int64_t>(layers.size());
    return models::with_recipe(std::move(workload),
                               models::layer_recipes_of(workload.recipe, layers));
}

models::Result<LayerProfile> trace_profile(StepToTrace step, int64_t batch_size,
                                           const StepSource& source) {
    step.workload.batch_size = batch_size;
    const auto trace = source(step);
    if (!trace) return tl::unexpected(trace.error());
    return profile_layers(**trace);
}

}  // namespace

std::vector<Recipe> recipes_of_a_layer(const models::Workload& workload, const Gpu& gpu,
                                       const Calibration& calibration) {
    std::vector<Recipe> recipes = combinations(workload.recipe, models::Search::kAlways);
    std::erase_if(recipes, [&](const Recipe& recipe) {
        return recipe.attention != workload.recipe.attention &&
               !why_not_comparable(recipe.attention, gpu, calibration).empty();
    });
    return supported_recipes(std::move(recipes), workload, gpu);
}

std::vector<Recipe> recipes_on_top_of(const Recipe& recipe) {
    std::vector<Recipe> recipes = combinations(recipe, models::Search::kOnBest);
    std::erase(recipes, recipe);
    return recipes;
}

models::Result<LayerTable> LayerTable::trace(StepToTrace step, const std::vector<Recipe>& recipes,
                                             int64_t batch_size, const StepSource& source) {
    step.workload = with_layers(std::move(step.workload), recipes);
    auto small = trace_profile(step, batch_size, source);
    if (!small) return tl::unexpected(small.error());
    auto large = trace_profile(step, 2 * batch_size, source);
    if (!large) return tl::unexpected(large.error());
    LayerTable table;
    table.recipes_ = recipes;
    table.small_batch_ = batch_size;
    table.small_head_bytes_ = small->head_bytes;
    table.large_head_bytes_ = large->head_bytes;
    for (std::size_t i = 1; i <= recipes.size(); ++i) {
        table.small_.push_back(small->bytes[i]);
        table.large_.push_back(large->bytes[i]);
        auto work = AffineOps::fit(small->work[i], large->work[i]);
        if (!work) return tl::unexpected(work.error());
        table.work_.push_back(std::move(*work));
    }
    return table;
}

void LayerTable::append(const LayerTable& other) {
    recipes_.insert(recipes_.end(), other.recipes_.begin(), other.recipes_.end());
    small_.insert(small_.end(), other.small_.begin(), other.small_.end());
    large_.insert(large_.end(), other.large_.begin(), other.large_.end());
    work_.insert(work_.end(), other.work_.begin(), other.work_.end());
}

int64_t LayerTable::line(int64_t small, int64_t large, int64_t batch_size) const {
    return small + (large - small) * (batch_size - small_batch_) / small_batch_;
}

LayerBytes LayerTable::bytes_at(std::size_t option, int64_t batch_size) const {
    const LayerBytes& a = small_[option];
    const LayerBytes& b = large_[option];
    return {.saved_bytes = line(a.saved_bytes, b.saved_bytes, batch_size),
            .forward_bytes = line(a.forward_bytes, b.forward_bytes, batch_size),
            .backward_bytes = line(a.backward_bytes, b.backward_bytes, batch_size),
            .gradient_bytes = line(a.gradient_bytes, b.gradient_bytes, batch_size)};
}

LayerProblem LayerTable::problem_at(int64_t batch_size, const TimeModel& model,
                                    const HostBound& waits) const {
    LayerProblem problem{.gradient_bytes = bytes_at(0, batch_size).gradient_bytes,
                         .head_bytes = line(small_head_bytes_, large_head_bytes_, batch_size)};
    for (std::size_t i = 0; i < recipes_.size(); ++i) {
        const LayerBytes bytes = bytes_at(i, batch_size);
        const StepTime time = time_of(work_[i].at(batch_size), model);
        const double forward_ns = waits.forward ? time.forward.host_ns : time.forward.kernels_ns;
        const double backward_ns =
            waits.backward ? time.backward.host_ns : time.backward.kernels_ns;
        problem.options.push_back({.saved_bytes = bytes.saved_bytes,
                                   .forward_bytes = bytes.forward_bytes,
                                   .backward_bytes = bytes.backward_bytes,
                                   .time_ns = whole_ns(forward_ns + backward_ns)});
    }
    return problem;
}

std::vector<std::size_t> LayerTable::best_at(int64_t batch_size, const TimeModel& model,
                                             const HostBound& waits) const {
    std::vector<std::size_t> best;
    for (const uint16_t option : useful_options(problem_at(batch_size, model, waits))) {
        best.push_back(option);
    }
    return best;
}

}  // namespace profiler
