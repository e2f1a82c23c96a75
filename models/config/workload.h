#pragma once

#include "models/config/layer_recipes.h"
#include "models/config/model_config.h"
#include "models/config/precision.h"
#include "models/config/result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Everything that defines a training step: model, head, recipe, batch, precision, data.
/// Two traces are comparable when their workloads differ in the recipe only.
namespace models {

enum class Padding : uint8_t {
    kNone,   // all sequences full, no mask
    kRandom  // random lengths in [S/2, S]; an additive mask [B, S]
};
inline constexpr std::array<std::string_view, 2> kPaddingNames{"none", "random"};

struct Workload {
    ModelConfig model;
    Head head = Head::kLayers;
    std::string recipe_name = "original";    // as the user gave it
    Recipe recipe;                           // of what is outside the layers, and of most layers
    std::vector<RecipeRange> layer_recipes;  // of the others; canonical, as in LayerRecipes
    Precision precision = Precision::kFp32;
    int64_t batch_size = 8;  // B
    int64_t seq_len = 512;   // S
    Padding padding = Padding::kNone;
    int64_t seed = 0;
    double learning_rate = 1e-4;

    friend bool operator==(const Workload&, const Workload&) = default;
};

/// Checks that the workload can exist: sizes positive, heads divide the hidden size, sequence
/// within the model's positions, no tensor over 2^31 elements, probabilities in [0, 1], a head
/// that the family has, switches of the recipe that go together. One sentence per problem, the
/// first one found.
Result<void> validate(const Workload& workload);

/// Also that the CPU can run it: SDPA backends and fusions that exist on CUDA only are refused.
Result<void> validate_for_cpu(const Workload& workload);

nlohmann::json to_json(const Workload& workload);
/// As written: what comes from a file or from another process still goes through `validate`.
Result<Workload> workload_from_json(const nlohmann::json& json);

/// The same step with another recipe, or one for each layer. Errors: as parse_recipe_mix.
Result<Workload> with_recipe(Workload workload, std::string_view recipe);
Workload with_recipe(Workload workload, LayerRecipes layer_recipes);  // named by its canonical text

LayerRecipes layer_recipes_of(const Workload& workload);
/// The step of whose layers all have the recipe of this one.
Workload workload_of_layer(const Workload& workload, int64_t layer);
/// That of what is outside the layers first, then those of layers, each once.
std::vector<Recipe> recipes_in(const Workload& workload);

/// The same step but for the recipe: what comparisons group by.
bool comparable(const Workload& a, const Workload& b);

}  // namespace models
