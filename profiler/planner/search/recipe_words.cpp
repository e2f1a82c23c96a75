#include "profiler/planner/search/recipe_words.h"

#include "models/config/switches.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using models::Recipe;

/// The values in which a layer's recipe differs from the reference.
std::vector<std::string_view> phrases_of(const Recipe& recipe, const Recipe& reference) {
    std::vector<std::string_view> phrases;
    models::for_each_switch([&](const auto& table) {
        const models::SwitchValue& value = table.chosen(recipe);
        const bool differs = &value != &table.chosen(reference);
        if (differs && !table.is_for_step) phrases.push_back(value.phrase);
    });
    return phrases;
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
    return (layers.size() == 1 ? "layer " : "layers ") + join_with_and(ranges);
}

}  // namespace

std::string describe_techniques(const models::Workload& chosen, const models::Workload& reference) {
    const int64_t num_layers = chosen.model.num_layers;
    std::vector<std::pair<std::string_view, Layers>> techniques;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        const Recipe recipe = models::recipe_of_layer(models::layer_recipes_of(chosen), layer);
        for (const std::string_view phrase : phrases_of(recipe, reference.recipe)) {
            std::size_t i = 0;
            while (i < techniques.size() && techniques[i].first != phrase) ++i;
            if (i == techniques.size()) techniques.push_back({phrase, {}});
            techniques[i].second.push_back(layer);
        }
    }
    if (techniques.empty()) return "nothing";

    std::vector<std::string> groups;  // techniques of the same layers
    std::vector<bool> is_said(techniques.size(), false);
    for (std::size_t i = 0; i < techniques.size(); ++i) {
        std::vector<std::string> names;
        for (std::size_t j = i; j < techniques.size(); ++j) {
            if (is_said[j] || techniques[j].second != techniques[i].second) continue;
            is_said[j] = true;
            names.emplace_back(techniques[j].first);
        }
        if (names.empty()) continue;
        groups.push_back(join_with_and(names) + " in " + text_of(techniques[i].second, num_layers));
    }
    std::string text;
    for (const std::string& group : groups) text += (text.empty() ? "" : "; ") + group;
    return text;
}

}  // namespace profiler
