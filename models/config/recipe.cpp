#include "models/config/recipe.h"

#include "models/config/names.h"
#include "models/config/switches.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace models {
namespace {

// What only programs have, alone and beside switches.
constexpr std::string_view kChunkedLoss = "chunked-loss", kChunkedLossItem = "loss=chunked";

constexpr Recipe kTempoRecipe{.gelu = Gelu::kInPlace,
                              .layer_norm = LayerNorm::kFromOutput,
                              .attention = Attention::kRecomputeDropout};

Recipe with(Recipe recipe, auto Recipe::*member, auto value) {
    recipe.*member = value;
    return recipe;
}

template <typename Enum, std::size_t N>
std::optional<Enum> find_value(const Switch<Enum, N>& table, std::string_view name) {
    for (const auto& row : table.rows) {
        if (name == row.is.name || (name == row.is.former_name && !name.empty())) return row.value;
    }
    return std::nullopt;
}

/// Sets the switches of one text.
class SwitchSetter {
public:
    explicit SwitchSetter(Recipe& recipe) : recipe_(recipe) {}

    Result<void> set(std::string_view name, std::string_view value) {
        Result<void> result = fail("'{}' is not a switch of a recipe: choose one of {}.", name,
                                   fmt::join(switch_names(), ", "));
        std::size_t index = 0;
        for_each_switch([&](const auto& table) {
            const bool is_named =
                !name.empty() && (name == table.name || name == table.former_name);
            if (is_named) result = set(table, value, is_set_[index]);
            ++index;
        });
        return result;
    }

private:
    template <typename Enum, std::size_t N>
    Result<void> set(const Switch<Enum, N>& table, std::string_view name, bool& is_set) {
        const auto value = find_value(table, name);
        if (!value) {
            return fail("'{}' is not a value of '{}': choose one of {}.", name, table.name,
                        fmt::join(table.names(), ", "));
        }
        if (std::exchange(is_set, true)) {
            return fail("The recipe sets {} twice: give each switch one value.", table.name);
        }
        recipe_.*table.member = *value;
        return {};
    }
    static std::vector<std::string_view> switch_names() {
        std::vector<std::string_view> names;
        for_each_switch([&](const auto& table) { names.push_back(table.name); });
        return names;
    }

    Recipe& recipe_;
    std::array<bool, std::tuple_size_v<decltype(kSwitches)>> is_set_{};
};

Result<Recipe> find_preset(std::string_view name) {
    const std::vector<RecipePreset>& presets = recipe_presets();
    if (const std::size_t place = preset_place(name); place < presets.size()) {
        return presets[place].recipe;
    }
    std::vector<std::string_view> names;
    for (const RecipePreset& preset : presets) names.push_back(preset.name);
    return fail("'{}' is not a recipe: did you mean {}?", name,
                fmt::join(nearest_names(name, names), ", "));
}

std::vector<RecipePreset> make_presets() {
    const Recipe original;
    const Recipe tempo = kTempoRecipe;
    Recipe deepspeed_all{.gelu = Gelu::kRecompute,
                         .layer_norm = LayerNorm::kFromOutput,
                         .attention = Attention::kRecomputeDropout};
    const Recipe best{.gelu = Gelu::kInPlace,
                      .layer_norm = LayerNorm::kFromOutput,
                      .attention = Attention::kFlash,
                      .masks = Masks::kPhilox,
                      .fusion = Fusion::kTempo};
    const Recipe flash = with(original, &Recipe::attention, Attention::kFlash);
    return {
        {"original", "stock ops with tempo::dropout: the baseline", original},
        {"original-stock", "original with torch's own dropout",
         with(original, &Recipe::dropout, Dropout::kStock)},
        {"tempo", "Tempo's three techniques, masks of one byte", tempo},
        {"tempo-packed", "tempo with masks of one bit", with(tempo, &Recipe::masks, Masks::kBit)},
        {"tempo-philox", "tempo with dropout masks regenerated, nothing stored",
         with(tempo, &Recipe::masks, Masks::kPhilox)},
        {"tempo-fused", "tempo with bias+GELU and dropout+residual+LayerNorm each in one kernel",
         with(tempo, &Recipe::fusion, Fusion::kTempo)},
        {"tempo-gelu", "only the in-place GELU", with(original, &Recipe::gelu, Gelu::kInPlace)},
        {"tempo-layernorm", "only the in-place LayerNorm",
         with(original, &Recipe::layer_norm, LayerNorm::kFromOutput)},
        {"tempo-dropout", "only the dropout recomputation",
         with(original, &Recipe::attention, Attention::kRecomputeDropout)},
        {"tempo-published", "predicted only: Tempo's 2022 release with its scratch and its passes",
         with(tempo, &Recipe::implementation, Implementation::kPublished)},
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
         "attention that never stores the probabilities (SDPA flash); on the CPU without attention "
         "dropout",
         flash},
        {"flash-tempo", "flash attention with Tempo's GELU and LayerNorm",
         with(tempo, &Recipe::attention, Attention::kFlash)},
        {"deepspeed-fused", "DeepSpeed's layer with its fused kernels and its three memory flags",
         with(deepspeed_all, &Recipe::fusion, Fusion::kDeepSpeed)},
        {"substation",
         "Substation's layer: its twelve fused kernels, saves all that forward writes",
         with(original, &Recipe::fusion, Fusion::kSubstation)},
        {"best",
         "flash attention, Tempo's GELU and LayerNorm fused with their neighbours, regenerated "
         "dropout masks; on the CPU without attention dropout",
         best},
        {"checkpoint-sqrt", "sqrt(L) checkpoints for L layers",
         with(original, &Recipe::checkpoint, Checkpoint::kSqrt)},
        {"checkpoint-attention",
         "selective checkpointing: scores, softmax and dropout of attention run again in backward",
         with(original, &Recipe::checkpoint, Checkpoint::kAttentionCore)},
    };
}

}  // namespace

const std::vector<RecipePreset>& recipe_presets() {
    static const std::vector<RecipePreset> presets = make_presets();
    return presets;
}

std::size_t preset_place(std::string_view name) {
    const std::vector<RecipePreset>& presets = recipe_presets();
    const auto found = std::ranges::find(presets, name, &RecipePreset::name);
    return static_cast<std::size_t>(found - presets.begin());
}

bool is_preset(std::string_view name) { return preset_place(name) < recipe_presets().size(); }

Result<void> apply_recipe_items(Recipe& recipe, std::string_view items) {
    SwitchSetter switches(recipe);
    for (bool first = true;; first = false) {
        const std::size_t comma = items.find(',');
        const std::string_view item = items.substr(0, comma);
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos) {
            if (!first)
                return fail(
                    "'{}' is not the first item of its recipe, and only the first may be a preset: "
                    "write switch=value.",
                    item);
            auto preset = find_preset(item);
            if (!preset) return tl::unexpected(preset.error());
            recipe = *preset;
        } else if (auto set = switches.set(item.substr(0, equals), item.substr(equals + 1)); !set) {
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

Result<ProgramRecipe> parse_program_recipe(std::string_view text) {
    ProgramRecipe program;
    std::vector<std::string_view> items;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string_view item = text.substr(begin, comma - begin);
        begin = comma + 1;
        if (item == kChunkedLossItem || text == kChunkedLoss) {
            program.chunks_loss = true;
        } else {
            items.push_back(item);
        }
    }
    const bool is_alone = program.chunks_loss && items.empty();
    const std::string rest = fmt::format("{}", fmt::join(items, ","));
    auto recipe = parse_recipe(is_alone ? "original-stock" : rest);
    if (!recipe) return tl::unexpected(recipe.error());
    program.recipe = *recipe;
    return program;
}

Result<std::string> join_program_recipes(std::string_view one, std::string_view other) {
    if (one == kChunkedLoss) std::swap(one, other);
    const auto first = parse_program_recipe(one);
    if (!first) return tl::unexpected(first.error());
    const auto second = parse_program_recipe(other);
    if (!second) return tl::unexpected(second.error());
    std::string joined(one);
    // Alone, a loss in chunks leaves all switches as they are.
    const bool has_switches = other != kChunkedLoss;
    std::string_view contested;
    for_each_switch([&](const auto& table) {
        const auto unset = Recipe{}.*table.member;
        const auto before = first->recipe.*table.member;
        const auto added = second->recipe.*table.member;
        if (!has_switches || added == unset || added == before) return;
        if (before != unset) contested = table.name;
        joined += fmt::format(",{}={}", table.name, table.chosen(second->recipe).name);
    });
    if (!contested.empty()) {
        return fail("'{}' and '{}' want different values of {}.", one, other, contested);
    }
    if (second->chunks_loss && !first->chunks_loss) joined += fmt::format(",{}", kChunkedLossItem);
    return joined;
}

std::string differing_switches(const Recipe& recipe, const Recipe& base) {
    std::string text;
    for_each_switch([&](const auto& table) {
        if (recipe.*table.member == base.*table.member) return;
        if (!text.empty()) text += ',';
        text += fmt::format("{}={}", table.name, table.chosen(recipe).name);
    });
    return text;
}

std::string to_text(const Recipe& recipe) {
    const std::string text = differing_switches(recipe, Recipe{});
    return text.empty() ? "original" : text;
}

int64_t layers_per_checkpoint(Checkpoint checkpoint, int64_t num_layers) {
    switch (checkpoint) {
        case Checkpoint::kPerLayer:
            return 1;
        case Checkpoint::kSqrt:
            return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(num_layers))));
        case Checkpoint::kNone:
        case Checkpoint::kAttentionCore:
            return 0;
    }
    return 0;
}

bool runs_on_cpu(const Recipe& recipe) {
    bool runs = true;
    for_each_switch([&](const auto& table) {
        runs = runs && table.chosen(recipe).runs_on == RunsOn::kEverywhere;
    });
    return runs;
}

bool uses_implementation(const Recipe& recipe) {
    bool uses = false;
    for_each_switch(
        [&](const auto& table) { uses = uses || table.chosen(recipe).uses_implementation; });
    return uses;
}

}  // namespace models
