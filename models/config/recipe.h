#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A recipe is a choice per op: which tensors are saved for backward, what backward recomputes, and
/// which kernel runs. Tempo, DeepSpeed, checkpointing and flash attention are presets over the same
/// switches. models/config/switches.h has one table for each switch; docs/techniques.md lists what
/// each preset makes a layer save.
namespace models {

enum class Gelu : uint8_t {
    kOriginal,   // saves input and output
    kInPlace,    // saves the output and a branch mask (Tempo)
    kRecompute,  // saves the input only and computes the output again (DeepSpeed gelu_checkpoint)
    kPython      // one kernel for each step of the formula (Hugging Face gelu_new, gelu_python)
};
enum class LayerNorm : uint8_t {
    kOriginal,   // saves input, mean, rstd
    kFromOutput  // saves output, rstd (Tempo; DeepSpeed normalize_invertible)
};
enum class Attention : uint8_t {
    kEager,             // saves probabilities, dropout mask and dropout output
    kRecomputeDropout,  // drops the dropout output (Tempo; DeepSpeed attn_dropout_checkpoint)
    kFlash,             // the backends of scaled_dot_product_attention
    kEfficient,
    kCudnn
};
enum class Masks : uint8_t { kByte, kBit, kPhilox };
enum class Checkpoint : uint8_t { kNone, kPerLayer, kSqrt, kAttentionCore };
enum class Fusion : uint8_t {
    kNone,
    kTempo,  // bias and GELU in one op; dropout, residual and LayerNorm in one op
    kSubstation,
    kDeepSpeed
};
/// Which of the projections to query, key and value are one product (GEMM): Ivanov et al. call it
/// algebraic fusion (arXiv 2007.00072).
enum class Qkv : uint8_t {
    kModel,     // as the model has it: BERT three products; GPT-2 and stacked layers one
    kSeparate,  // three products
    kQueryKey,  // query and key in one product, value in another
    kKeyValue,  // query in one product, key and value in another
    kFused      // one product
};
enum class Dropout : uint8_t { kTempo, kStock };  // tempo::dropout or at::native_dropout
enum class Optimizer : uint8_t { kSgd, kAdamW, kAdamWLoop, kAdamWFused, kLamb };
/// Who implements Tempo's techniques.
enum class Implementation : uint8_t {
    kOurs,
    kPublished  // Tempo's 2022 release: its launches, passes and scratch tensors; predicted only
};

struct Recipe {
    Gelu gelu = Gelu::kOriginal;
    LayerNorm layer_norm = LayerNorm::kOriginal;
    Attention attention = Attention::kEager;
    Masks masks = Masks::kByte;
    Checkpoint checkpoint = Checkpoint::kNone;
    Fusion fusion = Fusion::kNone;
    Qkv qkv = Qkv::kModel;
    Dropout dropout = Dropout::kTempo;
    Optimizer optimizer = Optimizer::kAdamW;
    Implementation implementation = Implementation::kOurs;

    friend bool operator==(const Recipe&, const Recipe&) = default;
};

struct RecipePreset {
    std::string_view name;
    std::string_view summary;  // one line for `--help`
    Recipe recipe;
};

/// All presets, in the order in which they are listed to users.
const std::vector<RecipePreset>& recipe_presets();

/// The place of the preset with this name among them; their number if there is none.
std::size_t preset_place(std::string_view name);
bool is_preset(std::string_view name);

/// A preset's name ("tempo-packed"), or switches on top of `original` or of a preset that stands
/// first: "gelu=in_place,masks=bit", "tempo,masks=bit".
/// Errors: an unknown name (with the nearest ones), an unknown switch or value, a switch given
/// twice.
Result<Recipe> parse_recipe(std::string_view text);

/// What is put into the models of a program that is not ours: a recipe, and what only such programs
/// have.
struct ProgramRecipe {
    Recipe recipe;
    bool chunks_loss = false;  // a large vocabulary's cross entropy in chunks that run again
};

/// As parse_recipe, and "chunked-loss" alone, or "loss=chunked" beside other items. Alone, it
/// leaves all else as it is. Errors: as parse_recipe.
Result<ProgramRecipe> parse_program_recipe(std::string_view text);

/// Two recipes for one program: "tempo" and "chunked-loss" are "tempo,loss=chunked".
/// Errors: as parse_program_recipe, or the two want different values of a switch.
Result<std::string> join_program_recipes(std::string_view one, std::string_view other);

/// Canonical text: the switches that differ from `original`, as "gelu=in_place,masks=bit", or
/// "original". parse_recipe(to_text(r)) == r.
std::string to_text(const Recipe& recipe);

/// Changes `recipe` by items as parse_recipe takes them. A preset may stand first; it replaces all
/// switches. Errors: as parse_recipe.
Result<void> apply_recipe_items(Recipe& recipe, std::string_view items);

/// "gelu=in_place,masks=bit": the switches of `recipe` that differ from `base`; empty if none does.
std::string differing_switches(const Recipe& recipe, const Recipe& base);

/// Number of layers that one checkpoint runs again: 1, or ceil(sqrt(L)) as in Chen et al. 2016
/// (arXiv 1604.06174); 0: no whole layers.
int64_t layers_per_checkpoint(Checkpoint checkpoint, int64_t num_layers);

/// False for recipes that need CUDA or are predicted only.
bool runs_on_cpu(const Recipe& recipe);

/// True if the recipe has a value whose kernels `implementation` chooses: for any other recipe,
/// `implementation` changes nothing.
bool uses_implementation(const Recipe& recipe);

}  // namespace models
