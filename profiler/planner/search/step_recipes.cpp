#include "profiler/planner/search/step_recipes.h"

#include "models/config/switches.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/search/layer_table.h"

#include <algorithm>

namespace profiler {
namespace {

using models::Recipe;

void add_once(std::vector<Recipe>& recipes, const Recipe& recipe) {
    const auto known = std::ranges::find(recipes, recipe);
    if (known == recipes.end()) recipes.push_back(recipe);
}

}  // namespace

StepRecipes recipes_of_a_step(const models::Workload& workload, const Gpu& gpu,
                              const Calibration& calibration) {
    const models::Optimizer optimizer = workload.recipe.optimizer;
    models::Workload baseline =
        models::with_recipe(workload, models::LayerRecipes{Recipe{.optimizer = optimizer}, {}});
    StepRecipes found;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        models::Workload own = baseline;
        own.recipe = preset.recipe;
        own.recipe.optimizer = optimizer;
        if (const auto ok = check_gpu_support(own, gpu); !ok) {
            found.refused.push_back({std::string(preset.name), ok.error().message});
        } else {
            add_once(found.recipes, own.recipe);
        }
    }
    found.num_presets = found.recipes.size();
    for (const Recipe& recipe : recipes_of_a_layer(baseline, gpu, calibration)) {
        add_once(found.recipes, recipe);
    }
    return found;
}

std::vector<Recipe> recipes_on_top_of(const std::vector<Recipe>& best,
                                      const models::Workload& workload, const Gpu& gpu) {
    std::vector<Recipe> recipes;
    for (const Recipe& recipe : best) {
        for (const Recipe& more : recipes_on_top_of(recipe)) add_once(recipes, more);
    }
    return supported_recipes(std::move(recipes), workload, gpu);
}

std::vector<Recipe> recipes_between(const Recipe& from, const Recipe& to) {
    int num_differing = 0;
    models::for_each_switch([&](const auto& table) {
        if (from.*table.member != to.*table.member) ++num_differing;
    });
    if (num_differing > kMostSwitches) return {};
    std::vector<Recipe> recipes;
    const unsigned last = (1U << static_cast<unsigned>(num_differing)) - 1;
    for (unsigned chosen = 1; chosen < last; ++chosen) {
        Recipe recipe = from;
        unsigned bit = 1;
        models::for_each_switch([&](const auto& table) {
            if (from.*table.member == to.*table.member) return;
            if ((chosen & bit) != 0) recipe.*table.member = to.*table.member;
            bit <<= 1;
        });
        recipes.push_back(recipe);
    }
    return recipes;
}

Recipe most_frequent(const std::vector<Recipe>& layers) {
    const auto count = [&](const Recipe& recipe) { return std::ranges::count(layers, recipe); };
    return *std::ranges::max_element(layers, {}, count);
}

}  // namespace profiler
