#include "models/config/validity.h"

#include "models/config/switches.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace models {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;

/// "eager, recompute_dropout or flash".
std::string one_of(std::vector<std::string_view> names) {
    const std::string_view last = names.back();
    names.pop_back();
    return names.empty() ? std::string(last)
                         : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

// ---- sizes -----------------------------------------------------------------------------------

Result<void> validate_size(std::string_view field, std::string_view words, int64_t value) {
    if (value < 1) {
        return fail_fields({field}, "The {} is {}: it must be at least 1.", words, value);
    }
    if (value > kMaxElements) {
        return fail_fields({field}, "The {} is {}: it must be at most 2^31.", words, value);
    }
    return {};
}

Result<void> validate_sizes(const Workload& w) {
    const ModelConfig& m = w.model;
    if (auto ok = validate_size("batch_size", "batch size", w.batch_size); !ok) return ok;
    if (auto ok = validate_size("seq_len", "sequence length", w.seq_len); !ok) return ok;
    for (const ModelSize& size : kModelSizes) {
        const int64_t value = m.*size.member;
        if (size.lowest == 1) {
            if (auto ok = validate_size(size.field, size.words, value); !ok) return ok;
        } else if (value < 0 || value > kMaxElements) {
            return fail("The {} is {}: it must be from 0 to 2^31.", size.words, value);
        }
    }
    if (w.gradient_accumulation_steps < 1 || w.gradient_accumulation_steps > kMaxMicroBatches) {
        return fail_fields({"gradient_accumulation_steps"},
                           "The number of micro-batches is {}: it must be from 1 to {}.",
                           w.gradient_accumulation_steps, kMaxMicroBatches);
    }
    if (m.num_layers > kMaxLayers) {
        return fail_fields({"num_layers"}, "The number of layers is {}: it must be at most {}.",
                           m.num_layers, kMaxLayers);
    }
    if (m.hidden_size % m.num_heads != 0) {
        return fail_fields({"num_heads"},
                           "{} heads do not divide the hidden size {}: choose a number of heads "
                           "that divides it.",
                           m.num_heads, m.hidden_size);
    }
    const int64_t positions = m.max_position_embeddings - m.first_position;
    if (w.seq_len > positions && w.head != Head::kLayers) {
        return fail_fields(
            {"seq_len"},
            "The sequence length {} is over the {} positions of {}: choose a shorter sequence.",
            w.seq_len, positions, m.name);
    }
    return {};
}

/// Products of sizes in double: exact enough to compare with 2^31, and they cannot overflow.
Result<void> validate_elements(const Workload& w) {
    const auto d = [](int64_t v) { return static_cast<double>(v); };
    const ModelConfig& m = w.model;
    const double rows = d(w.batch_size) * d(w.seq_len);
    const std::vector<Recipe> recipes = recipes_in(w);
    const bool has_scores = std::any_of(recipes.begin(), recipes.end(), [](const Recipe& recipe) {
        return recipe.attention == Attention::kEager ||
               recipe.attention == Attention::kRecomputeDropout;
    });
    const std::pair<std::string_view, double> tensors[] = {
        {"attention scores [B, A, S, S]", has_scores ? rows * d(m.num_heads) * d(w.seq_len) : 0},
        {"intermediate activation [B, S, I]",
         rows * d(std::max(m.intermediate_size, 3 * m.hidden_size))},
        {"feed-forward weight [I, H]", d(m.intermediate_size) * d(m.hidden_size)},
        {"attention weight [3H, H]", 3 * d(m.hidden_size) * d(m.hidden_size)},
        {"embedding [V, H]", w.head == Head::kLayers ? 0 : d(m.vocab_size) * d(m.hidden_size)},
        {"logits [B, S, V]",
         w.head == Head::kMlm || w.head == Head::kLm ? rows * d(m.vocab_size) : 0}};
    for (const auto& [what, count] : tensors) {
        if (count > d(kMaxElements)) {
            return fail_fields({"batch_size", "seq_len", "hidden_size"},
                               "The {} would have {:.4g} billion elements, more than 2^31 (2.147 "
                               "billion): choose a smaller batch, sequence length or hidden size.",
                               what, count / 1e9);
        }
    }
    return {};
}

Result<void> validate_head(const Workload& w) {
    const ModelConfig& m = w.model;
    const auto heads = m.traits().heads;
    const bool is_known =
        w.head == Head::kLayers || std::find(heads.begin(), heads.end(), w.head) != heads.end();
    if (!heads.empty() && !is_known) {
        std::vector<std::string_view> names{name_of(Head::kLayers)};
        for (const Head head : heads) names.push_back(name_of(head));
        return fail_fields({"head"}, "{} has no head '{}': choose {}.", m.name, name_of(w.head),
                           one_of(std::move(names)));
    }
    if (!m.traits().has_padding && !(is_known && w.padding == Padding::kNone)) {
        return fail_fields({"head", "padding"},
                           "{} is a stack of layers without embeddings and padding: choose the "
                           "head 'layers' and no padding.",
                           m.name);
    }
    if (!is_known) {
        return fail_fields(
            {"head"}, "{} is a single layer without embeddings: choose the head 'layers'.", m.name);
    }
    return {};
}

Result<void> validate_options(const Workload& w) {
    const ModelConfig& m = w.model;
    const std::pair<std::string_view, double> probabilities[] = {
        {"hidden_dropout_p", m.hidden_dropout_p}, {"attention_dropout_p", m.attention_dropout_p}};
    for (const auto& [field, p] : probabilities) {
        if (!(p >= 0 && p <= 1)) {
            return fail_fields({field}, "The dropout probability {} is not between 0 and 1.", p);
        }
    }
    if (auto ok = validate_head(w); !ok) return ok;
    if (w.seed < 0) {
        return fail_fields({"seed"}, "The seed is {}: it must not be negative.", w.seed);
    }
    return {};
}

// ---- the recipe, on any device ---------------------------------------------------------------

Result<void> validate_layers_of_recipe(const Workload& w) {
    if (w.layer_recipes.empty() || w.layer_recipes.back().last_layer < w.model.num_layers) {
        return {};
    }
    return fail_fields({"recipe"}, "The recipe '{}' names layer {}, but {} has the layers 0 to {}.",
                       w.recipe_name, w.layer_recipes.back().last_layer, w.model.name,
                       w.model.num_layers - 1);
}

/// Calls `check(table, value)` for the chosen value of each switch, up to the first problem.
template <typename Check>
Result<void> check_switches(const Recipe& recipe, Check&& check) {
    Result<void> result;
    for_each_switch([&](const auto& table) {
        if (result) result = check(table, table.chosen(recipe));
    });
    return result;
}

/// "eager, recompute_dropout or flash": the values of a switch that `is_allowed` accepts.
template <typename Table, typename IsAllowed>
std::string choices(const Table& table, IsAllowed&& is_allowed) {
    std::vector<std::string_view> names;
    for (const auto& row : table.rows) {
        if (is_allowed(row.is)) names.push_back(row.is.name);
    }
    return one_of(std::move(names));
}

Result<void> validate_is_implemented(const Workload& w, const Recipe& recipe) {
    return check_switches(recipe, [&](const auto& table, const SwitchValue& value) -> Result<void> {
        if (value.runs_on != RunsOn::kNowhere) return {};
        return fail_fields(
            {"recipe"}, "The recipe '{}' sets {}={}, which is not implemented: choose {}.",
            w.recipe_name, table.name, value.name, choices(table, [](const SwitchValue& other) {
                return other.runs_on != RunsOn::kNowhere;
            }));
    });
}

Result<void> validate_published(const Workload& w, const Recipe& recipe) {
    if (recipe.implementation != Implementation::kPublished) return {};
    if (recipe.masks != Masks::kByte) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets masks={}, but the kernels of "
                           "implementation=published store masks as bytes: choose masks=byte.",
                           w.recipe_name, name_of(recipe.masks));
    }
    if (w.model.traits().activation == Activation::kTanhGelu && recipe.gelu == Gelu::kInPlace) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets implementation=published, which has no tanh GELU, "
                           "and {} needs it: choose implementation=ours.",
                           w.recipe_name, w.model.name);
    }
    return {};
}

/// "choose the recipe tempo-fused": what sets all that the fused ops need.
std::string_view preset_of(Fusion fusion) {
    switch (fusion) {
        case Fusion::kNone:
            return "original";
        case Fusion::kTempo:
            return "tempo-fused";
        case Fusion::kSubstation:
            return "substation";
        case Fusion::kDeepSpeed:
            return "deepspeed-fused";
    }
    return "original";
}

Result<void> validate_fusion(const Workload& w, const Recipe& recipe) {
    if (recipe.fusion == Fusion::kNone) return {};
    const SwitchValue& fusion = kFusionSwitch.chosen(recipe);
    const FamilyTraits& traits = w.model.traits();
    if (recipe.fusion != Fusion::kSubstation && traits.activation == Activation::kRelu) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets fusion={}, whose ops compute GELU, but {} has "
                           "ReLU: choose the recipe substation, or fusion=none.",
                           w.recipe_name, fusion.name, w.model.name);
    }
    if (recipe.fusion != Fusion::kTempo && traits.is_pre_norm()) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets fusion={}, a layer that normalizes after its "
                           "residuals, but {} normalizes before them: choose the "
                           "recipe tempo-fused, or fusion=none.",
                           w.recipe_name, fusion.name, w.model.name);
    }
    Recipe needed = recipe;
    if (auto ok = apply_recipe_items(needed, fusion.needs); !ok) return ok;
    if (recipe.fusion == Fusion::kDeepSpeed && recipe.gelu != Gelu::kOriginal &&
        recipe.gelu != Gelu::kRecompute) {
        needed.gelu = Gelu::kOriginal;
    }
    if (recipe != needed) {
        return fail_fields(
            {"recipe"},
            "The recipe '{}' sets fusion={}, whose ops need {}: add that, choose the "
            "recipe {}, or fusion=none.",
            w.recipe_name, fusion.name, differing_switches(needed, recipe),
            preset_of(recipe.fusion));
    }
    return {};
}

Result<void> validate_checkpoint(const Workload& w, const Recipe& recipe) {
    if (!w.input_requires_grad && layers_per_checkpoint(recipe.checkpoint, 1) > 0) {
        return fail_fields({"recipe"},
                           "The recipe '{}' checkpoints layers, but a benchmark of one layer has "
                           "nothing before it that backward could start from: choose another "
                           "recipe, or time the whole model.",
                           w.recipe_name);
    }
    const SwitchValue& checkpoint = kCheckpointSwitch.chosen(recipe);
    if (checkpoint.needs.empty()) return {};
    Recipe needed = recipe;
    if (auto ok = apply_recipe_items(needed, checkpoint.needs); !ok) return ok;
    if (recipe == needed) return {};
    return fail_fields(
        {"recipe"},
        "The recipe '{}' sets checkpoint={}, which runs the steps of eager attention "
        "again and needs {}: choose that, or checkpoint=none.",
        w.recipe_name, checkpoint.name, differing_switches(needed, recipe));
}

/// torch's own dropout saves its mask as bytes, and cannot draw one mask again by itself.
Result<void> validate_stock_dropout(const Workload& w, const Recipe& recipe) {
    if (recipe.dropout != Dropout::kStock) return {};
    if (recipe.attention == Attention::kRecomputeDropout) {
        return fail_fields({"recipe"},
                           "The recipe '{}' cannot recompute the dropout of attention with "
                           "dropout=stock: choose dropout=tempo or attention={}.",
                           w.recipe_name, name_of(Attention::kEager));
    }
    if (recipe.masks != Masks::kByte) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets masks={}, but dropout=stock stores masks as "
                           "bytes: choose dropout=tempo or masks=byte.",
                           w.recipe_name, name_of(recipe.masks));
    }
    return {};
}

Result<void> validate_recipe(const Workload& w, const Recipe& recipe) {
    if (auto ok = validate_is_implemented(w, recipe); !ok) return ok;
    const FamilyTraits& traits = w.model.traits();
    if (!traits.takes_switches) {
        Recipe usual = recipe;
        usual.masks = {};
        usual.dropout = {};
        usual.optimizer = Recipe{}.optimizer;
        if (layers_per_checkpoint(recipe.checkpoint, 1) > 0) usual.checkpoint = {};
        if (usual != Recipe{}) {
            return fail_fields(
                {"recipe"},
                "The recipe '{}' changes ops that {} does not have (GELU, LayerNorm, "
                "scaled attention): choose original with masks, dropout, checkpoints of whole "
                "layers or an optimizer.",
                w.recipe_name, w.model.name);
        }
    }
    if (recipe.gelu != Gelu::kOriginal && traits.activation == Activation::kRelu) {
        return fail_fields({"recipe"},
                           "The recipe '{}' sets gelu={}, but {} has ReLU: choose gelu=original{}.",
                           w.recipe_name, name_of(recipe.gelu), w.model.name,
                           recipe.fusion == Fusion::kNone ? "" : ",fusion=none");
    }
    if (auto ok = validate_published(w, recipe); !ok) return ok;
    if (auto ok = validate_fusion(w, recipe); !ok) return ok;
    if (auto ok = validate_checkpoint(w, recipe); !ok) return ok;
    return validate_stock_dropout(w, recipe);
}

// ---- where it runs ---------------------------------------------------------------------------

Result<void> validate_is_run(const Workload& w, const Recipe& recipe) {
    return check_switches(recipe, [&](const auto& table, const SwitchValue& value) -> Result<void> {
        if (value.runs_on != RunsOn::kPrediction) return {};
        return fail_fields({"recipe", "device"},
                           "The recipe '{}' sets {}={}, which is predicted and never run: choose "
                           "{}={}, or predict the recipe for a GPU.",
                           w.recipe_name, table.name, value.name, table.name,
                           table.chosen(Recipe{}).name);
    });
}

Result<void> validate_recipe_for_cpu(const Workload& w, const Recipe& recipe) {
    if (auto ok = validate_is_run(w, recipe); !ok) return ok;
    return check_switches(recipe, [&](const auto& table, const SwitchValue& value) -> Result<void> {
        if (value.runs_on == RunsOn::kCuda) {
            return fail_fields({"recipe"}, "{}={} runs on CUDA only: on the CPU choose {}.",
                               table.name, value.name, choices(table, [](const SwitchValue& other) {
                                   return other.runs_on == RunsOn::kEverywhere;
                               }));
        }
        if (!value.has_cpu_dropout && w.model.attention_dropout_p > 0) {
            return fail_fields({"attention_dropout_p"},
                               "{}={} has no dropout on the CPU: set the attention dropout of the "
                               "recipe '{}' to 0.",
                               table.name, value.name, w.recipe_name);
        }
        return {};
    });
}

/// The bytes of the dtype in which attention runs. Autocast gives it 16 bits.
int64_t attention_bytes(Precision precision) {
    return is_autocast(precision) ? 2 : weight_bytes(precision);
}

Result<void> validate_precision(Precision precision, ComputeCapability capability) {
    const bool is_tf32 = precision == Precision::kTf32;
    const bool is_bf16 = precision == Precision::kBf16 || precision == Precision::kAmpBf16 ||
                         precision == Precision::kPureBf16;
    if (capability >= kAmpere || !(is_tf32 || is_bf16)) return {};
    return fail_fields({"precision"},
                       "The precision {} needs compute capability 8.0, and this GPU has {}, which "
                       "multiplies no {} matrices: choose fp32 or fp16.",
                       name_of(precision), to_text(capability), is_tf32 ? "tf32" : "bf16");
}

/// What is asked for: "attention=flash" and what its CUDA kernels take.
struct Choice {
    std::string_view switch_name;
    const SwitchValue& value;

    std::string text() const { return fmt::format("{}={}", switch_name, value.name); }
};

Result<void> validate_head_dim(const Workload& w, const Choice& choice) {
    const CudaLimits& limits = choice.value.cuda;
    const int64_t multiple = std::max<int64_t>(
        1, limits.head_load_bytes / attention_bytes(w.precision));  // a load takes whole elements
    const int64_t head_dim = w.model.head_dim();
    if (head_dim % multiple == 0 && head_dim <= limits.max_head_dim) return {};
    const bool is_bounded = limits.max_head_dim < CudaLimits{}.max_head_dim;
    return fail_fields({"hidden_size", "num_heads", "recipe"},
                       "{} cannot run heads of {} elements: choose a hidden size and a number of "
                       "heads that give a multiple of {}{}, or attention={}.",
                       choice.text(), head_dim, multiple,
                       is_bounded ? fmt::format(" of at most {}", limits.max_head_dim) : "",
                       name_of(Attention::kEager));
}

/// No other choice helps a GPU that is too old for the kernels.
Result<void> validate_generation(const Choice& choice, ComputeCapability capability) {
    if (capability >= choice.value.cuda.capability) return {};
    return fail_fields({"recipe"},
                       "{} needs compute capability {}, and this GPU has {}: choose attention={}.",
                       choice.text(), to_text(choice.value.cuda.capability), to_text(capability),
                       name_of(Attention::kEfficient));
}

/// "fp16 or bf16": the precisions that a GPU of this generation has and the kernels take.
std::string_view precisions_for(const CudaLimits& limits, ComputeCapability capability) {
    if (limits.max_element_bytes > 2) return "fp32";
    return capability >= kAmpere ? "fp16 or bf16" : "fp16";
}

Result<void> validate_limits(const Workload& w, const Choice& choice,
                             ComputeCapability capability) {
    const CudaLimits& limits = choice.value.cuda;
    if (attention_bytes(w.precision) > limits.max_element_bytes) {
        return fail_fields({"precision", "recipe"},
                           "{} has no {} kernel: choose the precision {}, or attention={}.",
                           choice.text(), name_of(w.precision), precisions_for(limits, capability),
                           name_of(Attention::kEager));
    }
    if (auto ok = validate_head_dim(w, choice); !ok) return ok;
    if (w.padding == Padding::kNone) return {};
    if (!limits.takes_padding) {
        return fail_fields({"padding", "recipe"},
                           "{} has no padding mask: choose no padding, or attention={}.",
                           choice.text(), name_of(Attention::kEfficient));
    }
    if (!limits.takes_padding_with_causality && w.model.traits().is_causal) {
        return fail_fields({"padding", "recipe"},
                           "{} takes a padding mask or a causal mask, not both: choose no padding, "
                           "or attention={}.",
                           choice.text(), name_of(Attention::kEager));
    }
    return {};
}

}  // namespace

Result<void> validate(const Workload& workload) {
    if (auto ok = validate_sizes(workload); !ok) return ok;
    if (auto ok = validate_elements(workload); !ok) return ok;
    if (auto ok = validate_options(workload); !ok) return ok;
    if (auto ok = validate_layers_of_recipe(workload); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        if (auto ok = validate_recipe(workload, recipe); !ok) return ok;
    }
    return {};
}

Result<void> validate_for_cpu(const Workload& workload) {
    if (auto ok = validate(workload); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        if (auto ok = validate_recipe_for_cpu(workload, recipe); !ok) return ok;
    }
    if (workload.precision == Precision::kTf32) {
        return fail_fields({"precision"},
                           "The precision tf32 exists on CUDA only: on the CPU choose fp32 or "
                           "bf16.");
    }
    return {};
}

/// On CUDA, Substation's two passes with LayerNorm hold a row in registers.
Result<void> validate_rows(const Workload& w, const Recipe& recipe) {
    constexpr int64_t kUnit = 8, kMaxRow = 8192;  // kernels/residual_layernorm.h
    if (recipe.fusion != Fusion::kSubstation) return {};
    if (w.precision == Precision::kFp64) {
        return fail_fields({"precision", "recipe"},
                           "fusion=substation has no fp64 kernel on CUDA: choose the precision "
                           "fp32, or fusion=none.");
    }
    if (w.model.hidden_size % kUnit == 0 && w.model.hidden_size <= kMaxRow) return {};
    return fail_fields({"hidden_size", "recipe"},
                       "fusion=substation takes hidden sizes that are multiples of {} up to {} on "
                       "CUDA, not {}: choose such a size, or fusion=none.",
                       kUnit, kMaxRow, w.model.hidden_size);
}

Result<void> validate_for_prediction(const Workload& workload, ComputeCapability capability) {
    if (auto ok = validate(workload); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        if (auto ok = validate_rows(workload, recipe); !ok) return ok;
    }
    for (const Recipe& recipe : recipes_in(workload)) {
        auto ok = check_switches(recipe, [&](const auto& table, const SwitchValue& value) {
            return validate_generation({table.name, value}, capability);
        });
        if (!ok) return ok;
    }
    if (auto ok = validate_precision(workload.precision, capability); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        auto ok = check_switches(recipe, [&](const auto& table, const SwitchValue& value) {
            return validate_limits(workload, {table.name, value}, capability);
        });
        if (!ok) return ok;
    }
    return {};
}

Result<void> validate_for_cuda(const Workload& workload, ComputeCapability capability) {
    if (auto ok = validate_for_prediction(workload, capability); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        if (auto ok = validate_is_run(workload, recipe); !ok) return ok;
    }
    return {};
}

}  // namespace models
