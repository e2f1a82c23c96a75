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
/// The first part is the recipe of all layers and of what is outside them (embeddings, head,
/// optimizer); left out, as in the second example, it is `original`. Each further part holds for
/// one layer (`@3`) or for a range of layers: a preset replaces their recipe, switches alone change
/// it. Parts apply in their order.
namespace models {

/// Layers that do not train by the step's own recipe.
struct RecipeRange {
    int64_t first_layer = 0;
    int64_t last_layer = 0;  // included
    Recipe recipe;           // optimizer and kernels are the step's, and at their defaults here

    friend bool operator==(const RecipeRange&, const RecipeRange&) = default;
};

/// Canonical, so that equal mixes compare equal: `layers` rise without overlapping, neighbours with
/// the same recipe are one, and each differs from `recipe`.
struct LayerRecipes {
    Recipe recipe;
    std::vector<RecipeRange> layers;

    friend bool operator==(const LayerRecipes&, const LayerRecipes&) = default;
};

inline constexpr int64_t kMaxLayers = 100'000;  // of a model

/// Errors: as parse_recipe; layers that are no range; a part for layers that sets what is the whole
/// step's (optimizer, kernels).
Result<LayerRecipes> parse_layer_recipes(std::string_view text);

/// Canonical text. parse_recipe_mix(to_text(m)) == m.
std::string to_text(const LayerRecipes& layer_recipes);

/// The recipe of one layer, with the step's optimizer and kernels.
Recipe recipe_of_layer(const LayerRecipes& layer_recipes, int64_t layer);

/// The mix in which layer i has recipes[i]; `base` is the recipe outside the layers, and its
/// optimizer and kernels hold for all.
LayerRecipes layer_recipes_of(const Recipe& base, const std::vector<Recipe>& recipes);

}  // namespace models
