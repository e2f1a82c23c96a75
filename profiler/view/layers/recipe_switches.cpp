#include "profiler/view/layers/recipe_switches.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "models/config/workload.h"
#include "profiler/analysis/step/describe_run.h"

#include <utility>

namespace profiler {
namespace {

using models::LayerRecipes;
using models::Recipe;

/// The same change in all layers and outside them.
template <typename Change>
std::string changed(const LayerRecipes& from, int64_t num_layers, Change change) {
    Recipe base = from.recipe;
    change(base);
    if (from.layers.empty()) return models::to_text(base);
    std::vector<Recipe> layers;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        Recipe recipe = models::recipe_of_layer(from, layer);
        change(recipe);
        layers.push_back(recipe);
    }
    return models::to_text(models::layer_recipes_of(base, layers));
}

template <typename Table>
RecipeSwitchRow row_of(const Table& table, const LayerRecipes& from, int64_t num_layers,
                       const std::array<std::optional<Recipe>, 2>& recipes) {
    RecipeSwitchRow row{.name = std::string(table.name), .options = {}};
    for (const auto& value : table.rows) {
        const bool is_chosen = (recipes[0] && (*recipes[0]).*table.member == value.value) ||
                               (recipes[1] && (*recipes[1]).*table.member == value.value);
        if (value.is.runs_on == models::RunsOn::kNowhere && !is_chosen) continue;
        for (std::size_t side = 0; side < 2; ++side) {
            if (recipes[side] && (*recipes[side]).*table.member == value.value) {
                row.chosen[side] = row.options.size();
            }
        }
        const auto change = [&](Recipe& recipe) {
            // Names of the tables themselves: they always parse.
            if (!value.is.needs.empty()) (void)models::apply_recipe_items(recipe, value.is.needs);
            recipe.*table.member = value.value;
        };
        row.options.push_back({std::string(value.is.name), std::string(value.is.phrase),
                               changed(from, num_layers, change)});
    }
    return row;
}

}  // namespace

std::vector<RecipeSwitchRow> recipe_switches(const Trace& first, const Trace* second,
                                             int64_t layer) {
    const auto workload = workload_of(first);
    const auto other = second ? workload_of(*second) : std::nullopt;
    if (!workload || (second && !other)) return {};
    return recipe_switches(*workload, other ? &*other : nullptr, layer);
}

std::vector<RecipeSwitchRow> recipe_switches(const models::Workload& first,
                                             const models::Workload* second, int64_t layer) {
    const LayerRecipes from = models::layer_recipes_of(second ? *second : first);
    std::array<std::optional<Recipe>, 2> recipes;
    recipes[0] = models::recipe_of_layer(models::layer_recipes_of(first), layer);
    if (second) recipes[1] = models::recipe_of_layer(models::layer_recipes_of(*second), layer);
    std::vector<RecipeSwitchRow> rows;
    models::for_each_switch([&](const auto& table) {
        if (table.is_for_step) return;
        rows.push_back(row_of(table, from, first.model.num_layers, recipes));
    });
    return rows;
}

std::optional<std::string> canonical_recipe(const Trace& trace) {
    const auto workload = workload_of(trace);
    if (!workload) return std::nullopt;
    return models::to_text(models::layer_recipes_of(*workload));
}

}  // namespace profiler
