#include "models/config/recipe.h"
#include "models/config/switches.h"

#include <torch/library.h>

// The recipes of models/config for Python: it has no copy of their names, values and presets.
//
// Errors   ValueError with the sentence of models::parse_recipe.

namespace models::ops {
namespace {

using TextToText = c10::Dict<std::string, std::string>;

/// Every switch with its value: {"gelu": "in_place", "layer_norm": "from_output", ...}.
TextToText recipe_switches(const std::string& text) {
    const Result<Recipe> recipe = parse_recipe(text);
    TORCH_CHECK_VALUE(recipe.has_value(), recipe ? "" : recipe.error().message);
    TextToText switches;
    for_each_switch([&](const auto& table) {
        switches.insert(std::string(table.name), std::string(table.chosen(*recipe).name));
    });
    return switches;
}

/// The presets with a line on each, in the order in which they are listed to users.
TextToText recipe_presets_with_summaries() {
    TextToText presets;
    for (const RecipePreset& preset : recipe_presets()) {
        presets.insert(std::string(preset.name), std::string(preset.summary));
    }
    return presets;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tempo, m) {
    m.def("recipe_switches(str recipe) -> Dict(str, str)", recipe_switches);
    m.def("recipe_presets() -> Dict(str, str)", recipe_presets_with_summaries);
}

}  // namespace models::ops
