#include "models/config/recipe_mix.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace models {
namespace {

struct LayerRange {
    int64_t first = 0;
    int64_t last = 0;
};

struct MixPart {
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
        return fail("'{}' names no layers: write a layer or a range, as @3 or @0-11.", text);
    }
    return LayerRange{*first, *last};
}

/// What a layer can have of its own.
Recipe without_step_switches(Recipe recipe) {
    recipe.optimizer = Recipe{}.optimizer;
    recipe.kernels = Recipe{}.kernels;
    return recipe;
}

Result<Recipe> recipe_with(Recipe recipe, const MixPart& part) {
    if (auto applied = apply_recipe_items(recipe, part.items); !applied) {
        return tl::unexpected(applied.error());
    }
    const auto names = [&](std::string_view key) {
        return part.items.find(key) != part.items.npos;
    };
    if (names("optimizer=") || names("kernels=") || recipe != without_step_switches(recipe)) {
        return fail(
            "The recipe '{}' of layers {} to {} sets optimizer or kernels, which are the whole "
            "step's: set them in the first part.",
            part.items, part.layers.first, part.layers.last);
    }
    return recipe;
}

/// Joins neighbours that are equal and drops what is the base's.
RecipeMix canonical(const Recipe& base, const std::vector<LayerRecipe>& layers) {
    RecipeMix mix{.recipe = base, .layers = {}};
    for (const LayerRecipe& one : layers) {
        if (one.recipe == without_step_switches(base)) continue;
        const bool continues = !mix.layers.empty() && mix.layers.back().recipe == one.recipe &&
                               mix.layers.back().last_layer + 1 == one.first_layer;
        if (continues) {
            mix.layers.back().last_layer = one.last_layer;
        } else {
            mix.layers.push_back(one);
        }
    }
    return mix;
}

/// Between two neighbouring ends of ranges all layers have the same recipe.
Result<RecipeMix> apply_parts(const Recipe& base, const std::vector<MixPart>& parts) {
    std::vector<int64_t> cuts;
    for (const MixPart& part : parts) {
        cuts.push_back(part.layers.first);
        cuts.push_back(part.layers.last + 1);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<LayerRecipe> layers;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        Recipe recipe = without_step_switches(base);
        for (const MixPart& part : parts) {
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

Result<RecipeMix> parse_recipe_mix(std::string_view text) {
    Recipe base;
    std::vector<MixPart> parts;
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
            return fail("The part '{}' of a recipe does not say for which layers: write {}@0-11.",
                        part, part);
        }
        if (plus == std::string_view::npos) return apply_parts(base, parts);
        text.remove_prefix(plus + 1);
    }
}

std::string to_text(const RecipeMix& mix) {
    std::string text = to_text(mix.recipe);
    const Recipe base = without_step_switches(mix.recipe);
    for (const LayerRecipe& one : mix.layers) {
        text += fmt::format("+{}@{}", differing_switches(one.recipe, base), one.first_layer);
        if (one.last_layer != one.first_layer) text += fmt::format("-{}", one.last_layer);
    }
    return text;
}

Recipe recipe_of_layer(const RecipeMix& mix, int64_t layer) {
    for (const LayerRecipe& one : mix.layers) {
        if (layer < one.first_layer || layer > one.last_layer) continue;
        Recipe recipe = one.recipe;
        recipe.optimizer = mix.recipe.optimizer;
        recipe.kernels = mix.recipe.kernels;
        return recipe;
    }
    return mix.recipe;
}

RecipeMix mix_of(const Recipe& base, const std::vector<Recipe>& recipes) {
    std::vector<LayerRecipe> layers;
    for (const Recipe& recipe : recipes) {
        const auto layer = static_cast<int64_t>(layers.size());
        layers.push_back({layer, layer, without_step_switches(recipe)});
    }
    return canonical(base, layers);
}

}  // namespace models
