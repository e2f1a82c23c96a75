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
/// Two traces can be compared if their workloads differ in the recipe only. validity.h says which
/// workloads can exist and where they run.
namespace models {

enum class Padding : uint8_t {
    kNone,   // all sequences full, no mask
    kRandom  // random lengths in [S/2, S]; an additive mask [B, S]
};
inline constexpr std::array<std::string_view, 2> kPaddingNames{"none", "random"};

/// Of a step. So many take hours to trace.
inline constexpr int64_t kMaxMicroBatches = 10'000;

struct Workload {
    ModelConfig model;
    Head head = Head::kLayers;
    std::string recipe_name = "original";    // as the user gave it
    Recipe recipe;                           // outside the layers, and in most layers
    std::vector<RecipeRange> layer_recipes;  // in the other layers; canonical, as in LayerRecipes
    Precision precision = Precision::kFp32;
    int64_t batch_size = 8;  // B, of a micro-batch
    int64_t seq_len = 512;   // S
    /// Micro-batches of a step: each runs forward and backward, and their gradients add up before
    /// the parameters are updated.
    int64_t gradient_accumulation_steps = 1;
    Padding padding = Padding::kNone;
    bool input_requires_grad = true;  // of Head::kLayers; false in benchmarks of a layer
    int64_t seed = 0;
    double learning_rate = 1e-4;

    friend bool operator==(const Workload&, const Workload&) = default;
};

nlohmann::json to_json(const Workload& workload);
/// Reads what to_json wrote. Call `validate` on a workload from a file or another process.
Result<Workload> workload_from_json(const nlohmann::json& json);

/// The same step with another recipe, or with one for each layer. Errors: as parse_layer_recipes.
Result<Workload> with_recipe(Workload workload, std::string_view recipe);
Workload with_recipe(Workload workload, LayerRecipes layer_recipes);  // named by canonical text

LayerRecipes layer_recipes_of(const Workload& workload);
/// Sequences that one step trains: B in each micro-batch.
int64_t sequences_per_step(const Workload& workload);
double sequences_per_s(const Workload& workload, int64_t step_time_ns);
/// The same step with this layer's recipe in all layers.
Workload workload_of_layer(const Workload& workload, int64_t layer);
/// The recipe outside the layers first, then those of the layers, each once.
std::vector<Recipe> recipes_in(const Workload& workload);

/// True if only the recipes differ. Comparisons group workloads by this.
bool comparable(const Workload& a, const Workload& b);

}  // namespace models
