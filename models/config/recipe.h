#pragma once

#include "models/config/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A recipe is a choice per op: which tensors backward keeps, what it recomputes, which kernel
/// runs. Tempo, DeepSpeed, checkpointing, flash and Substation are presets over the same switches
/// (docs/notation.md lists what each makes a layer keep).
namespace models {

enum class Gelu : uint8_t {
    kOriginal,   // keeps the input
    kInPlace,    // keeps the output and a branch mask (Tempo)
    kRecompute,  // keeps the input only, the output is computed again (DeepSpeed gelu_checkpoint)
    kPython      // a kernel for each step of the formula (Hugging Face's gelu_new, gelu_python)
};
enum class LayerNorm : uint8_t {
    kOriginal,   // keeps input, mean, rstd
    kFromOutput  // keeps output, rstd (Tempo; DeepSpeed normalize_invertible)
};
enum class Attention : uint8_t {
    kMaterialized,      // keeps probabilities, dropout mask and dropout output
    kRecomputeDropout,  // drops the dropout output (Tempo; DeepSpeed attn_dropout_checkpoint)
    kFlash,
    kEfficient,
    kCudnn
};
enum class Masks : uint8_t { kByte, kBit, kPhilox };
enum class Checkpoint : uint8_t { kNone, kPerLayer, kSqrt, kAttentionCore };
enum class Fusion : uint8_t { kNone, kSubstation, kDeepSpeed };
enum class Kernels : uint8_t {
    kOurs,
    kPublished  // Tempo's 2022 release: its launches, passes and scratch tensors; predicted only
};
enum class Dropout : uint8_t { kTempo, kStock };  // tempo::dropout or at::native_dropout
enum class Optimizer : uint8_t { kSgd, kAdamW, kAdamWLoop, kAdamWFused };

inline constexpr std::array<std::string_view, 4> kGeluNames{"original", "in_place", "recompute",
                                                            "python"};
inline constexpr std::array<std::string_view, 2> kLayerNormNames{"original", "from_output"};
inline constexpr std::array<std::string_view, 5> kAttentionNames{
    "materialized", "recompute_dropout", "flash", "efficient", "cudnn"};
inline constexpr std::array<std::string_view, 3> kMasksNames{"byte", "bit", "philox"};
inline constexpr std::array<std::string_view, 4> kCheckpointNames{"none", "per_layer", "sqrt",
                                                                  "attention_core"};
inline constexpr std::array<std::string_view, 3> kFusionNames{"none", "substation", "deepspeed"};
inline constexpr std::array<std::string_view, 2> kKernelsNames{"ours", "published"};
inline constexpr std::array<std::string_view, 2> kDropoutNames{"tempo", "stock"};
inline constexpr std::array<std::string_view, 4> kOptimizerNames{"sgd", "adamw", "adamw_loop",
                                                                 "adamw_fused"};

struct Recipe {
    Gelu gelu = Gelu::kOriginal;
    LayerNorm layer_norm = LayerNorm::kOriginal;
    Attention attention = Attention::kMaterialized;
    Masks masks = Masks::kByte;
    Checkpoint checkpoint = Checkpoint::kNone;
    Fusion fusion = Fusion::kNone;
    Dropout dropout = Dropout::kTempo;
    Optimizer optimizer = Optimizer::kAdamW;
    Kernels kernels = Kernels::kOurs;  // of Tempo's techniques

    friend bool operator==(const Recipe&, const Recipe&) = default;
};

struct RecipePreset {
    std::string_view name;
    std::string_view summary;  // one line for `--help`
    Recipe recipe;
    bool runs_on_cpu = true;  // false: predicted or CUDA only
};

/// All presets, in the order in which they are listed to users.
const std::vector<RecipePreset>& recipe_presets();

struct RecipeSwitch {
    std::string_view name;
    std::vector<std::string_view> values;  // the first is that of `original`
};

/// In the order of canonical text.
std::vector<RecipeSwitch> recipe_switches();

/// A preset's name ("tempo-packed"), or switches by hand on top of `original` or of a preset named
/// first: "gelu=in_place,masks=bit", "tempo,masks=bit".
/// Errors: unknown name (the nearest ones are listed), unknown switch or value.
Result<Recipe> parse_recipe(std::string_view text);

/// Canonical text: the switches that differ from `original`, as "gelu=in_place,masks=bit", or
/// "original". parse_recipe(to_text(r)) == r.
std::string to_text(const Recipe& recipe);

/// Changes `recipe` by items as parse_recipe takes them: a preset may stand first and replaces all
/// switches. Errors: as parse_recipe.
Result<void> apply_recipe_items(Recipe& recipe, std::string_view items);

/// "gelu=in_place,masks=bit": the switches of `recipe` that differ from `base`; empty: none.
std::string differing_switches(const Recipe& recipe, const Recipe& base);

}  // namespace models
