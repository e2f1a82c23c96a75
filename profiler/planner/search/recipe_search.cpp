#include "profiler/planner/search/recipe_search.h"

#include "models/config/batch_bisection.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/search/step_recipes.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/units.h"

#include <algorithm>

namespace profiler {
namespace {

/// The table of layers is traced at this batch and at twice that: reductions take scratch at both.
constexpr int64_t kTableBatch = 8;

using models::Recipe;

/// Up to this batch recipes are compared to find those worth tracing with more on top.
constexpr int64_t kLargestComparedBatch = 4096;

/// How many choices one search for a fitting choice may trace and simulate.
constexpr int kMostSimulations = 10;

bool contains(const std::vector<Recipe>& recipes, const Recipe& recipe) {
    return std::ranges::find(recipes, recipe) != recipes.end();
}

/// The index of the last choice whose estimated peak is within `bytes`; 0 if there is none.
std::size_t last_within(const std::vector<LayerChoice>& choices, int64_t bytes) {
    const auto above = std::ranges::upper_bound(choices, bytes, {}, &LayerChoice::peak_bytes);
    return above == choices.begin() ? 0 : static_cast<std::size_t>(above - choices.begin()) - 1;
}

}  // namespace

models::Result<void> RecipeSearch::prepare() {
    if (!row_.gpu.no_kernel_model.empty()) {
        return models::fail_fields(
            {"gpu"}, "The recipe search compares times, and {} has no modelled times: {}.",
            row_.gpu.id, row_.gpu.no_kernel_model);
    }
    const auto model =
        make_time_model(row_.gpu, row_.environment, data_.calibration, row_.workload,
                        request_.plan.parallel, bus_bytes_per_s(request_.plan, data_, row_.gpu));
    if (!model) return tl::unexpected(model.error());
    model_ = *model;
    const auto step = interpolation_.ops_at(1);
    if (!step) return tl::unexpected(step.error());
    limits_ = limits_of(row_, request_.plan, step->parameters);

    const std::vector<Recipe> recipes =
        request_.candidates.empty()
            ? recipes_of_a_layer(row_.workload, row_.gpu, data_.calibration)
            : supported_recipes(request_.candidates, row_.workload, row_.gpu);
    if (recipes.empty()) {
        return models::fail_fields(
            {"recipe"}, "{} can run none of the given recipes: choose others.", row_.gpu.id);
    }
    auto table = trace_table(recipes);
    if (!table) return tl::unexpected(table.error());
    table_ = std::move(*table);
    if (request_.candidates.empty()) return add_on_top_of_best();
    return {};
}

models::Result<LayerTable> RecipeSearch::trace_table(const std::vector<Recipe>& recipes) {
    StepToTrace step = step_to_trace(row_, request_.plan, data_, row_.workload);
    step.workload.gradient_accumulation_steps = 1;  // all micro-batches are alike
    const int64_t batch_size =
        std::clamp<int64_t>(interpolation_.largest_valid_batch() / 2, 1, kTableBatch);
    return LayerTable::trace(std::move(step), recipes, batch_size, source_);
}

models::Result<void> RecipeSearch::add_on_top_of_best() {
    std::vector<Recipe> recipes;
    const int64_t last = std::min(interpolation_.largest_valid_batch(), kLargestComparedBatch);
    for (int64_t batch_size = 1; batch_size <= last; batch_size *= 4) {
        const auto waits = host_bound_at(batch_size);
        if (!waits) return tl::unexpected(waits.error());
        for (const std::size_t option : table_.best_at(batch_size, *model_, *waits)) {
            for (const Recipe& recipe : recipes_on_top_of(table_.recipes()[option])) {
                if (!contains(table_.recipes(), recipe) && !contains(recipes, recipe)) {
                    recipes.push_back(recipe);
                }
            }
        }
    }
    recipes = supported_recipes(std::move(recipes), row_.workload, row_.gpu);
    if (recipes.empty()) return {};
    auto table = trace_table(recipes);
    if (!table) return tl::unexpected(table.error());
    table_.append(*table);
    return {};
}

models::Result<HostBound> RecipeSearch::host_bound_at(int64_t batch_size) {
    const auto step = interpolation_.ops_at(batch_size);
    if (!step) return tl::unexpected(step.error());
    const StepTime time = time_of(*step, *model_);
    return HostBound{.forward = time.forward.host_ns > time.forward.kernels_ns,
                     .backward = time.backward.host_ns > time.backward.kernels_ns};
}

models::Result<SearchBatch> RecipeSearch::at_batch(int64_t batch_size) {
    if (const auto known = batches_.find(batch_size); known != batches_.end()) return known->second;
    const auto step = interpolation_.requests_at(batch_size);
    if (!step) return tl::unexpected(step.error());
    const auto peaks = interpolation_.unlimited_memory(batch_size, limits_.options);
    if (!peaks) return tl::unexpected(peaks.error());
    const auto waits = host_bound_at(batch_size);
    if (!waits) return tl::unexpected(waits.error());
    SearchBatch batch{.batch_size = batch_size,
                      .problem = table_.problem_at(batch_size, *model_, *waits)};
    const int64_t micro_batches = row_.workload.gradient_accumulation_steps;
    for (LayerOption& option : batch.problem.options) option.time_ns *= micro_batches;
    const StepLevels levels = levels_of(*step, limits_.options);
    LayerProblem& problem = batch.problem;
    problem.num_layers = row_.workload.model.num_layers;
    problem.base_bytes = levels.begin_bytes;
    problem.least_peak_bytes = levels.update_bytes;
    // Gradients that backward finds, of the step or of the micro-batch before, are part of the
    // base; sharded gradients leave a part of them.
    if (limits_.options.gradients == Gradients::kZeroed || micro_batches > 1) {
        problem.gradient_bytes = 0;
    }
    if (request_.plan.parallel.zero_stage >= 2) {
        problem.gradient_bytes /= request_.plan.parallel.num_gpus;
    }
    // Correct the estimates so that they are exact for the workload's own recipe: the sum leaves
    // out rounding and casts.
    const auto own =
        std::find(table_.recipes().begin(), table_.recipes().end(), row_.workload.recipe);
    const auto option = static_cast<uint16_t>(own - table_.recipes().begin());
    if (own == table_.recipes().end()) {
        return models::fail_fields({"recipe"},
                                   "The recipe {} is not among the recipes to choose from.",
                                   row_.workload.recipe_name);
    }
    const LayerChoice reference = evaluate_choice(
        problem, std::vector<uint16_t>(static_cast<std::size_t>(problem.num_layers), option));
    const int64_t missing = peaks->peak_allocated_bytes - reference.peak_bytes;
    problem.base_bytes += missing;
    problem.least_peak_bytes += missing;
    const auto ops = interpolation_.ops_at(batch_size);
    if (!ops) return tl::unexpected(ops.error());
    const StepTime time = time_of(*ops, *model_);
    batch.own_step_ns = time.total_ns();
    batch.rest_ns = time.total_ns() - static_cast<double>(reference.time_ns);
    return batches_.emplace(batch_size, std::move(batch)).first->second;
}

models::Workload RecipeSearch::workload_of(const LayerChoice& choice) const {
    std::vector<Recipe> layers;
    for (const uint16_t option : choice.options) layers.push_back(table_.recipes()[option]);
    Recipe base = most_frequent(layers);
    for (const Recipe& recipe : layers) {
        if (recipe.implementation == models::Implementation::kPublished) {
            base.implementation = recipe.implementation;
        }
    }
    return models::with_recipe(row_.workload, models::layer_recipes_of(base, layers));
}

models::Result<const SimulatedChoice*> RecipeSearch::simulate(const SearchBatch& batch,
                                                              const LayerChoice& choice) {
    models::Workload workload = workload_of(choice);
    workload.batch_size = batch.batch_size;
    for (const auto& [known, result] : simulated_) {
        if (known == workload) return &result;
    }
    const auto trace = source_(step_to_trace(row_, request_.plan, data_, workload));
    if (!trace) return tl::unexpected(trace.error());
    auto step = step_work_of(**trace);
    if (!step) return tl::unexpected(step.error());
    repeat_first_step(*step);
    SimulatedChoice result{.workload = workload,
                           .peaks = simulate_step(*step, limits_.options, std::nullopt)};
    const auto ok = profiler::fits(result.peaks, limits_.capacity_bytes, [&] {
        return models::Result<StepMemory>(
            simulate_step(*step, limits_.options, limits_.capacity_bytes));
    });
    if (!ok) return tl::unexpected(ok.error());
    result.fits = *ok;
    result.time = time_of(*step, *model_);
    result.step = std::move(*step);
    return &simulated_.emplace_back(std::move(workload), std::move(result)).second;
}

models::Result<int64_t> RecipeSearch::needed_bytes(const SimulatedChoice& choice) const {
    return least_capacity_bytes(choice.peaks, limits_.capacity_bytes, [&](int64_t limit_bytes) {
        return models::Result<StepMemory>(simulate_step(choice.step, limits_.options, limit_bytes));
    });
}

models::Result<std::optional<std::size_t>> RecipeSearch::fastest_fitting(
    const SearchBatch& batch, const std::vector<LayerChoice>& choices) {
    std::optional<std::size_t> fitting;
    std::size_t failing = choices.size();
    std::size_t guess = last_within(choices, limits_.capacity_bytes);
    std::size_t stride = 1;
    for (int i = 0; i < kMostSimulations && guess < choices.size(); ++i) {
        const auto result = simulate(batch, choices[guess]);
        if (!result) return tl::unexpected(result.error());
        if ((*result)->fits) {
            fitting = guess;
        } else {
            failing = guess;
        }
        const std::size_t next = fitting ? *fitting + 1 : 0;
        if (next >= failing) break;
        if (fitting && failing < choices.size()) {
            guess = next + (failing - next) / 2;
        } else if (fitting) {
            guess = std::min(*fitting + stride, choices.size() - 1);
            stride *= 2;
        } else {
            // Go down by the excess of allocated bytes, or by half the excess of reserved bytes if
            // only fragmentation is too large.
            const StepMemory& peaks = (*result)->peaks;
            const int64_t over = std::max(peaks.peak_allocated_bytes - limits_.capacity_bytes,
                                          (peaks.peak_reserved_bytes - limits_.capacity_bytes) / 2);
            guess = std::min(last_within(choices, choices[failing].peak_bytes - over),
                             failing - std::min(failing, stride));
            stride *= 2;
        }
    }
    return fitting;
}

models::Result<int64_t> RecipeSearch::find_largest_batch(int64_t limit_bytes) {
    const auto some_choice_fits = [&](int64_t batch_size) -> models::Result<bool> {
        if (batch_size > interpolation_.largest_valid_batch()) return false;
        auto batch = at_batch(batch_size);
        if (!batch) return tl::unexpected(batch.error());
        return smallest_choice(batch->problem).peak_bytes <= limit_bytes;
    };
    models::BatchBisection search;
    while (!search.is_done()) {
        const int64_t batch_size = search.next();
        const auto ok = some_choice_fits(batch_size);
        if (!ok) return tl::unexpected(ok.error());
        search.answer(batch_size, *ok);
    }
    return search.fits;
}

double RecipeSearch::sequences_per_s(int64_t batch_size, double step_ns) const {
    models::Workload workload = row_.workload;
    workload.batch_size = batch_size;
    return static_cast<double>(sequences_per_step(workload) * request_.plan.parallel.num_gpus) *
           kNsPerS / step_ns;
}

}  // namespace profiler
