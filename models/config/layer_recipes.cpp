#include "models/config/layer_recipes.h"

#include "models/config/switches.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace models {
namespace {

struct LayerRange {
    int64_t first = 0;
    int64_t last = 0;
};

struct RecipePart {
    std::string_view items;  // "tempo", "gelu=in_place,masks=bit"
    LayerRange layers;
};

std::optional<int64_t> parse_layer(std::string_view text) {
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || layer < 0 || layer >= kMaxLayers) return std::nullopt;
    return layer;
}

/// "3" or "0-11".
Result<LayerRange> parse_layers(std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto first = parse_layer(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_layer(text.substr(dash + 1));
    if (!first || !last || *first > *last) {
        return fail("'{}' does not name layers: write a layer or a range, as @3 or @0-11.", text);
    }
    return LayerRange{*first, *last};
}

/// `recipe` with the switches of the whole step as in `step`.
Recipe with_step_switches(Recipe recipe, const Recipe& step) {
    for_each_switch([&](const auto& table) {
        if (table.is_for_step) recipe.*table.member = step.*table.member;
    });
    return recipe;
}

/// What one layer can choose.
Recipe without_step_switches(const Recipe& recipe) { return with_step_switches(recipe, {}); }

/// "optimizer and implementation".
std::string step_switch_names() {
    std::vector<std::string_view> names;
    for_each_switch([&](const auto& table) {
        if (table.is_for_step) names.push_back(table.name);
    });
    return fmt::format("{}", fmt::join(names, " and "));
}

/// True if `items` has an item for a switch of the whole step, whatever its value.
bool names_step_switch(std::string_view items) {
    bool found = false;
    for_each_switch([&](const auto& table) {
        if (!table.is_for_step) return;
        for (const std::string_view name : {table.name, table.former_name}) {
            found = found || (!name.empty() && items.find(fmt::format("{}=", name)) != items.npos);
        }
    });
    return found;
}

Result<Recipe> recipe_with(Recipe recipe, const RecipePart& part) {
    if (auto applied = apply_recipe_items(recipe, part.items); !applied) {
        return tl::unexpected(applied.error());
    }
    if (names_step_switch(part.items) || recipe != without_step_switches(recipe)) {
        return fail(
            "The recipe '{}' of layers {} to {} sets {}, which hold for the whole step: set them "
            "in the first part.",
            part.items, part.layers.first, part.layers.last, step_switch_names());
    }
    return recipe;
}

/// Joins neighbouring ranges with equal recipes and drops ranges with the base's recipe.
LayerRecipes canonical(const Recipe& base, const std::vector<RecipeRange>& layers) {
    LayerRecipes layer_recipes{.recipe = base, .layers = {}};
    for (const RecipeRange& one : layers) {
        if (one.recipe == without_step_switches(base)) continue;
        const bool continues = !layer_recipes.layers.empty() &&
                               layer_recipes.layers.back().recipe == one.recipe &&
                               layer_recipes.layers.back().last_layer + 1 == one.first_layer;
        if (continues) {
            layer_recipes.layers.back().last_layer = one.last_layer;
        } else {
            layer_recipes.layers.push_back(one);
        }
    }
    return layer_recipes;
}

/// Cuts the layers at the ends of all ranges: within a cut, all layers have the same recipe.
Result<LayerRecipes> apply_parts(const Recipe& base, const std::vector<RecipePart>& parts) {
    std::vector<int64_t> cuts;
    for (const RecipePart& part : parts) {
        cuts.push_back(part.layers.first);
        cuts.push_back(part.layers.last + 1);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<RecipeRange> layers;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        Recipe recipe = without_step_switches(base);
        for (const RecipePart& part : parts) {
            if (cuts[i] < part.layers.first || cuts[i] > part.layers.last) continue;
            const auto changed = recipe_with(recipe, part);
            if (!changed) return tl::unexpected(changed.error());
            recipe = *changed;
        }
        layers.push_back({cuts[i], cuts[i + 1] - 1, recipe});
    }
    return canonical(base, layers);
}

}  // namespace

Result<LayerRecipes> parse_layer_recipes(std::string_view text) {
    Recipe base;
    std::vector<RecipePart> parts;
    for (bool first = true;; first = false) {
        const std::size_t plus = text.find('+');
        const std::string_view part = text.substr(0, plus);
        const std::size_t at = part.find('@');
        if (at != std::string_view::npos) {
            const auto layers = parse_layers(part.substr(at + 1));
            if (!layers) return tl::unexpected(layers.error());
            parts.push_back({part.substr(0, at), *layers});
        } else if (first) {
            auto parsed = parse_recipe(part);
            if (!parsed) return tl::unexpected(parsed.error());
            base = *parsed;
        } else {
            return fail("The part '{}' of a recipe does not name its layers: write {}@0-11.", part,
                        part);
        }
        if (plus == std::string_view::npos) return apply_parts(base, parts);
        text.remove_prefix(plus + 1);
    }
}

std::string to_text(const LayerRecipes& layer_recipes) {
    std::string text = to_text(layer_recipes.recipe);
    const Recipe base = without_step_switches(layer_recipes.recipe);
    for (const RecipeRange& one : layer_recipes.layers) {
        text += fmt::format("+{}@{}", differing_switches(one.recipe, base), one.first_layer);
        if (one.last_layer != one.first_layer) text += fmt::format("-{}", one.last_layer);
    }
    return text;
}

std::string canonical_recipe(const std::string& recipe) {
    const auto parsed = parse_layer_recipes(recipe);
    return parsed ? to_text(*parsed) : recipe;
}

std::string with_optimizer_of(const std::string& recipe, Optimizer optimizer) {
    auto parsed = parse_layer_recipes(recipe);
    if (!parsed) return recipe;
    parsed->recipe.optimizer = optimizer;
    return to_text(*parsed);
}

Recipe recipe_of_layer(const LayerRecipes& layer_recipes, int64_t layer) {
    for (const RecipeRange& one : layer_recipes.layers) {
        if (layer < one.first_layer || layer > one.last_layer) continue;
        return with_step_switches(one.recipe, layer_recipes.recipe);
    }
    return layer_recipes.recipe;
}

LayerRecipes layer_recipes_of(const Recipe& base, const std::vector<Recipe>& recipes) {
    std::vector<RecipeRange> layers;
    for (const Recipe& recipe : recipes) {
        const auto layer = static_cast<int64_t>(layers.size());
        layers.push_back({layer, layer, without_step_switches(recipe)});
    }
    return canonical(base, layers);
}

}  // namespace models
