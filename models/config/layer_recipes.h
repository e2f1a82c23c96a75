#pragma once

#include "models/config/recipe.h"
#include "models/config/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A recipe for each layer, as text:
///
///     original+attention=recompute_dropout@0-11      tempo@0-11+checkpoint@12-23
///     base    +switches                   @layers
///
/// The first part is the recipe of all layers and of everything outside them (embeddings, head,
/// optimizer). Without it, as in the second example, that recipe is `original`. Each further part
/// holds for one layer (`@3`) or for a range of layers. A preset replaces their recipe; switches
/// alone change it. Parts apply in their order.
namespace models {

/// Layers with a recipe of their own.
struct RecipeRange {
    int64_t first_layer = 0;
    int64_t last_layer = 0;  // included
    Recipe recipe;           // switches of the whole step (optimizer) are at their defaults here

    friend bool operator==(const RecipeRange&, const RecipeRange&) = default;
};

/// Canonical, so that equal choices compare equal: `layers` rise without overlap, neighbours with
/// the same recipe are one range, and each differs from `recipe`.
struct LayerRecipes {
    Recipe recipe;
    std::vector<RecipeRange> layers;

    friend bool operator==(const LayerRecipes&, const LayerRecipes&) = default;
};

inline constexpr int64_t kMaxLayers = 100'000;  // of a model

/// Errors: as parse_recipe; text after '@' that is no range of layers; a part for layers that sets
/// a switch of the whole step.
Result<LayerRecipes> parse_layer_recipes(std::string_view text);

/// Canonical text. parse_layer_recipes(to_text(r)) == r.
std::string to_text(const LayerRecipes& layer_recipes);

/// The recipe in its one canonical spelling. Text that names no recipe stays as it is.
std::string canonical_recipe(const std::string& recipe);

/// The optimizer of `recipe` replaced; texts that are no recipe stay.
std::string with_optimizer_of(const std::string& recipe, Optimizer optimizer);

/// The recipe of one layer, with the switches of the whole step.
Recipe recipe_of_layer(const LayerRecipes& layer_recipes, int64_t layer);

/// Layer i has recipes[i]. `base` is the recipe outside the layers, and its switches of the whole
/// step hold for all layers.
LayerRecipes layer_recipes_of(const Recipe& base, const std::vector<Recipe>& recipes);

}  // namespace models
