#include "models/config/recipe.h"

#include "models/config/names.h"

#include <fmt/ranges.h>

#include <tuple>

namespace models {
namespace {

constexpr Recipe kTempoRecipe{.gelu = Gelu::kInPlace,
                              .layer_norm = LayerNorm::kFromOutput,
                              .attention = Attention::kRecomputeDropout};

/// Calls `visit(name, value_names, member)` for each switch, in the order of canonical text.
template <typename Visit>
void for_each_switch(Visit&& visit) {
    visit("gelu", kGeluNames, &Recipe::gelu);
    visit("layer_norm", kLayerNormNames, &Recipe::layer_norm);
    visit("attention", kAttentionNames, &Recipe::attention);
    visit("masks", kMasksNames, &Recipe::masks);
    visit("checkpoint", kCheckpointNames, &Recipe::checkpoint);
    visit("fusion", kFusionNames, &Recipe::fusion);
    visit("dropout", kDropoutNames, &Recipe::dropout);
    visit("optimizer", kOptimizerNames, &Recipe::optimizer);
    visit("kernels", kKernelsNames, &Recipe::kernels);
}

Recipe with(Recipe recipe, auto Recipe::*member, auto value) {
    recipe.*member = value;
    return recipe;
}

Result<void> set_switch(Recipe& recipe, std::string_view key, std::string_view value) {
    Result<void> result;
    bool found = false;
    std::vector<std::string_view> keys;
    for_each_switch([&](std::string_view name, const auto& names, auto member) {
        keys.push_back(name);
        if (name != key) return;
        found = true;
        using Enum = std::remove_reference_t<decltype(recipe.*member)>;
        if (auto parsed = parse_name<Enum>(names, value, fmt::format("value of '{}'", name))) {
            recipe.*member = *parsed;
        } else {
            result = tl::unexpected(parsed.error());
        }
    });
    if (!found)
        return fail("'{}' is not a switch of a recipe: choose one of {}.", key,
                    fmt::join(keys, ", "));
    return result;
}

Result<Recipe> find_preset(std::string_view name) {
    std::vector<std::string_view> names;
    for (const RecipePreset& preset : recipe_presets()) {
        if (preset.name == name) return preset.recipe;
        names.push_back(preset.name);
    }
    return fail("'{}' is not a recipe: did you mean {}?", name,
                fmt::join(nearest_names(name, names), ", "));
}

std::vector<RecipePreset> make_presets() {
    const Recipe original;
    const Recipe tempo = kTempoRecipe;
    Recipe deepspeed_all{.gelu = Gelu::kRecompute,
                         .layer_norm = LayerNorm::kFromOutput,
                         .attention = Attention::kRecomputeDropout};
    const Recipe flash = with(original, &Recipe::attention, Attention::kFlash);
    return {
        {"original", "stock ops with tempo::dropout: the baseline", original},
        {"original-stock", "as original, with torch's own dropout",
         with(original, &Recipe::dropout, Dropout::kStock)},
        {"tempo", "Tempo's three techniques, masks of one byte", tempo},
        {"tempo-packed", "tempo with masks of one bit", with(tempo, &Recipe::masks, Masks::kBit)},
        {"tempo-philox", "tempo with dropout masks regenerated, nothing stored",
         with(tempo, &Recipe::masks, Masks::kPhilox)},
        {"tempo-gelu", "only the in-place GELU", with(original, &Recipe::gelu, Gelu::kInPlace)},
        {"tempo-layernorm", "only the in-place LayerNorm",
         with(original, &Recipe::layer_norm, LayerNorm::kFromOutput)},
        {"tempo-dropout", "only the dropout recomputation",
         with(original, &Recipe::attention, Attention::kRecomputeDropout)},
        {"tempo-published", "predicted only: Tempo's 2022 release with its scratch and its passes",
         with(tempo, &Recipe::kernels, Kernels::kPublished), /*runs_on_cpu=*/false},
        {"deepspeed-none", "DeepSpeed's layer without memory flags", original},
        {"deepspeed-normalize-invertible", "DeepSpeed's normalize_invertible",
         with(original, &Recipe::layer_norm, LayerNorm::kFromOutput)},
        {"deepspeed-attn-dropout-checkpoint", "DeepSpeed's attn_dropout_checkpoint",
         with(original, &Recipe::attention, Attention::kRecomputeDropout)},
        {"deepspeed-gelu-checkpoint", "DeepSpeed's gelu_checkpoint",
         with(original, &Recipe::gelu, Gelu::kRecompute)},
        {"deepspeed-all", "DeepSpeed's three memory flags", deepspeed_all},
        {"checkpoint", "activation checkpointing, one checkpoint a layer",
         with(original, &Recipe::checkpoint, Checkpoint::kPerLayer)},
        {"flash",
         "attention that never stores the probabilities (SDPA flash); on the CPU with "
         "--attention-dropout 0",
         flash},
        {"flash-tempo", "flash attention with Tempo's GELU and LayerNorm",
         with(tempo, &Recipe::attention, Attention::kFlash)},
    };
}

}  // namespace

const std::vector<RecipePreset>& recipe_presets() {
    static const std::vector<RecipePreset> presets = make_presets();
    return presets;
}

std::vector<RecipeSwitch> recipe_switches() {
    std::vector<RecipeSwitch> switches;
    for_each_switch([&](std::string_view name, const auto& names, auto) {
        switches.push_back({name, {names.begin(), names.end()}});
    });
    return switches;
}

Result<void> apply_recipe_items(Recipe& recipe, std::string_view items) {
    for (bool first = true;; first = false) {
        const std::size_t comma = items.find(',');
        const std::string_view item = items.substr(0, comma);
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos) {
            if (!first)
                return fail(
                    "In a recipe only the first item may be a preset, '{}' is not: write "
                    "switch=value.",
                    item);
            auto preset = find_preset(item);
            if (!preset) return tl::unexpected(preset.error());
            recipe = *preset;
        } else if (auto set = set_switch(recipe, item.substr(0, equals), item.substr(equals + 1));
                   !set) {
            return set;
        }
        if (comma == std::string_view::npos) return {};
        items.remove_prefix(comma + 1);
    }
}

Result<Recipe> parse_recipe(std::string_view text) {
    Recipe recipe;
    if (auto applied = apply_recipe_items(recipe, text); !applied) {
        return tl::unexpected(applied.error());
    }
    return recipe;
}

std::string differing_switches(const Recipe& recipe, const Recipe& base) {
    std::string text;
    for_each_switch([&](std::string_view name, const auto& names, auto member) {
        if (recipe.*member == base.*member) return;
        if (!text.empty()) text += ',';
        text += fmt::format("{}={}", name, names[static_cast<std::size_t>(recipe.*member)]);
    });
    return text;
}

std::string to_text(const Recipe& recipe) {
    const std::string text = differing_switches(recipe, Recipe{});
    return text.empty() ? "original" : text;
}

}  // namespace models
