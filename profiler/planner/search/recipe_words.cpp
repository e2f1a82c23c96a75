#include "profiler/planner/search/recipe_words.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using models::Recipe;

struct Word {
    std::string_view text;
    bool is_plural = false;
};

constexpr std::array<Word, 3> kGeluWords{
    {{"GELU as in the original"}, {"in-place GELU"}, {"recomputed GELU"}}};
constexpr std::array<Word, 2> kLayerNormWords{
    {{"LayerNorm as in the original"}, {"in-place LayerNorm"}}};
constexpr std::array<Word, 5> kAttentionWords{{{"materialized attention"},
                                               {"dropout recomputation"},
                                               {"flash attention"},
                                               {"memory-efficient attention"},
                                               {"cuDNN's attention"}}};
constexpr std::array<Word, 3> kMasksWords{
    {{"masks of one byte", true}, {"masks of one bit", true}, {"regenerated masks", true}}};
constexpr std::array<Word, 4> kCheckpointWords{{{"no checkpointing"},
                                                {"checkpointing"},
                                                {"checkpointing of several layers at once"},
                                                {"checkpointing of attention"}}};

static_assert(kLayerNormWords.size() == models::kLayerNormNames.size());
static_assert(kAttentionWords.size() == models::kAttentionNames.size());
static_assert(kMasksWords.size() == models::kMasksNames.size());
static_assert(kCheckpointWords.size() == models::kCheckpointNames.size());

using Words = std::vector<Word>;

template <std::size_t N, typename Enum>
void add_word(Words& words, const std::array<Word, N>& names, Enum own, Enum reference) {
    if (own != reference) words.push_back(names[static_cast<std::size_t>(own)]);
}

Words words_of(const Recipe& recipe, const Recipe& reference) {
    Words words;
    add_word(words, kAttentionWords, recipe.attention, reference.attention);
    add_word(words, kMasksWords, recipe.masks, reference.masks);
    add_word(words, kGeluWords, recipe.gelu, reference.gelu);
    add_word(words, kLayerNormWords, recipe.layer_norm, reference.layer_norm);
    add_word(words, kCheckpointWords, recipe.checkpoint, reference.checkpoint);
    return words;
}

using Layers = std::vector<int64_t>;

/// "all layers", "layer 3", "layers 0-11 and 20-23".
std::string text_of(const Layers& layers, int64_t num_layers) {
    if (static_cast<int64_t>(layers.size()) == num_layers) return "all layers";
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t last = i;
        while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
        ranges.push_back(last == i ? fmt::format("{}", layers[i])
                                   : fmt::format("{}-{}", layers[i], layers[last]));
        i = last + 1;
    }
    std::string text = layers.size() == 1 ? "layer " : "layers ";
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
    }
    return text;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    }
    return text;
}

}  // namespace

TechniqueWords describe_techniques(const models::Workload& chosen,
                                   const models::Workload& reference) {
    const int64_t num_layers = chosen.model.num_layers;
    std::vector<std::pair<Word, Layers>> techniques;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        const Recipe recipe = models::recipe_of_layer(models::layer_recipes_of(chosen), layer);
        for (const Word& word : words_of(recipe, reference.recipe)) {
            std::size_t i = 0;
            while (i < techniques.size() && techniques[i].first.text != word.text) ++i;
            if (i == techniques.size()) techniques.push_back({word, {}});
            techniques[i].second.push_back(layer);
        }
    }
    if (techniques.empty()) return {.text = "nothing"};

    std::vector<std::string> groups;  // techniques of the same layers
    std::vector<bool> is_said(techniques.size(), false);
    for (std::size_t i = 0; i < techniques.size(); ++i) {
        std::vector<std::string> names;
        for (std::size_t j = i; j < techniques.size(); ++j) {
            if (is_said[j] || techniques[j].second != techniques[i].second) continue;
            is_said[j] = true;
            names.emplace_back(techniques[j].first.text);
        }
        if (names.empty()) continue;
        groups.push_back(joined(names) + " in " + text_of(techniques[i].second, num_layers));
    }
    std::string text;
    for (const std::string& group : groups) text += (text.empty() ? "" : "; ") + group;
    return {.text = std::move(text),
            .is_plural = techniques.size() > 1 || techniques.front().first.is_plural};
}

}  // namespace profiler
