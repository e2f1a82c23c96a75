#include "models/config/workload.h"

#include "models/config/names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace models {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;

bool is_decoder(const ModelConfig& model) { return model.family == Family::kGpt2; }

Result<void> validate_sizes(const Workload& w) {
    const ModelConfig& m = w.model;
    const std::pair<std::string_view, int64_t> sizes[] = {
        {"batch size", w.batch_size},       {"sequence length", w.seq_len},
        {"number of layers", m.num_layers}, {"hidden size", m.hidden_size},
        {"number of heads", m.num_heads},   {"intermediate size", m.intermediate_size},
        {"vocabulary size", m.vocab_size}};
    for (const auto& [what, value] : sizes) {
        if (value < 1) return fail("The {} is {}: it must be at least 1.", what, value);
        if (value > kMaxElements)
            return fail("The {} is {}: it must be at most 2^31.", what, value);
    }
    if (m.num_layers > kMaxLayers) {
        return fail("The number of layers is {}: it must be at most {}.", m.num_layers, kMaxLayers);
    }
    const std::pair<std::string_view, int64_t> counts[] = {
        {"number of positions", m.max_position_embeddings},
        {"first position", m.first_position},
        {"number of token types", m.type_vocab_size}};
    for (const auto& [what, value] : counts) {
        if (value < 0 || value > kMaxElements)
            return fail("The {} is {}: it must be from 0 to 2^31.", what, value);
    }
    if (m.hidden_size % m.num_heads != 0) {
        return fail(
            "{} heads do not divide the hidden size {}: choose --heads so that the hidden size is "
            "a multiple of it.",
            m.num_heads, m.hidden_size);
    }
    const int64_t positions = m.max_position_embeddings - m.first_position;
    if (w.seq_len > positions && w.head != Head::kLayers) {
        return fail(
            "The sequence length {} is over the {} positions of {}: choose a shorter --seq.",
            w.seq_len, positions, m.name);
    }
    return {};
}

/// Products of sizes in double: exact enough to compare with 2^31, and they cannot overflow.
Result<void> validate_elements(const Workload& w) {
    const auto d = [](int64_t v) { return static_cast<double>(v); };
    const ModelConfig& m = w.model;
    const double rows = d(w.batch_size) * d(w.seq_len);
    const std::pair<std::string_view, double> tensors[] = {
        {"attention scores [B, A, S, S]", rows * d(m.num_heads) * d(w.seq_len)},
        {"intermediate activation [B, S, I]",
         rows * d(std::max(m.intermediate_size, 3 * m.hidden_size))},
        {"feed-forward weight [I, H]", d(m.intermediate_size) * d(m.hidden_size)},
        {"attention weight [3H, H]", 3 * d(m.hidden_size) * d(m.hidden_size)},
        {"embedding [V, H]", w.head == Head::kLayers ? 0 : d(m.vocab_size) * d(m.hidden_size)},
        {"logits [B, S, V]",
         w.head == Head::kMlm || w.head == Head::kLm ? rows * d(m.vocab_size) : 0}};
    for (const auto& [what, count] : tensors) {
        if (count > d(kMaxElements)) {
            return fail(
                "The {} would have {:.3g} elements, more than 2^31: choose a smaller --batch, "
                "--seq or --hidden.",
                what, count);
        }
    }
    return {};
}

Result<void> validate_options(const Workload& w) {
    const ModelConfig& m = w.model;
    for (const double p : {m.hidden_dropout_p, m.attention_dropout_p}) {
        if (!(p >= 0 && p <= 1))
            return fail("The dropout probability {} is not between 0 and 1.", p);
    }
    const bool decoder_head = w.head == Head::kLm;
    const bool encoder_head = w.head == Head::kMlm || w.head == Head::kSquad;
    if ((is_decoder(m) && encoder_head) || (!is_decoder(m) && decoder_head)) {
        return fail("The head '{}' does not belong to {}: choose --head {}.", name_of(w.head),
                    m.name, is_decoder(m) ? "layers or lm" : "layers, mlm or squad");
    }
    if (m.family == Family::kSubstation && w.head != Head::kLayers) {
        return fail("{} is a single layer without embeddings: choose --head layers.", m.name);
    }
    if (w.seed < 0) return fail("The seed is {}: it must not be negative.", w.seed);
    return {};
}

Result<void> validate_layers_of_recipe(const Workload& w) {
    if (w.layer_recipes.empty() || w.layer_recipes.back().last_layer < w.model.num_layers) {
        return {};
    }
    return fail("The recipe '{}' names layer {}, but {} has the layers 0 to {}.", w.recipe_name,
                w.layer_recipes.back().last_layer, w.model.name, w.model.num_layers - 1);
}

/// Switches that contradict one another, on any device.
Result<void> validate_recipe(const Workload& w, const Recipe& recipe) {
    if (recipe.checkpoint == Checkpoint::kAttentionCore) {
        return fail(
            "The recipe '{}' asks for checkpoint=attention_core, which nothing implements: choose "
            "none, per_layer or sqrt.",
            w.recipe_name);
    }
    if (recipe.gelu != Gelu::kOriginal && w.model.family == Family::kSubstation) {
        return fail("The recipe '{}' sets gelu={}, but {} has ReLU: choose gelu=original.",
                    w.recipe_name, kGeluNames[static_cast<std::size_t>(recipe.gelu)], w.model.name);
    }
    if (recipe.kernels == Kernels::kPublished) {
        if (recipe.masks != Masks::kByte) {
            return fail(
                "The recipe '{}' asks for kernels=published, whose masks are bytes: choose "
                "masks=byte.",
                w.recipe_name);
        }
        if (is_decoder(w.model) && recipe.gelu == Gelu::kInPlace) {
            return fail(
                "The recipe '{}' asks for kernels=published, whose GELU is the exact one and not "
                "GPT-2's: choose kernels=ours.",
                w.recipe_name);
        }
    }
    if (recipe.dropout != Dropout::kStock) return {};
    // torch's own dropout draws other masks each time it runs, and keeps them as bytes.
    if (recipe.checkpoint != Checkpoint::kNone) {
        return fail(
            "The recipe '{}' reruns a checkpointed forward with dropout=stock, whose masks would "
            "differ and make the gradients wrong: choose dropout=tempo or checkpoint=none.",
            w.recipe_name);
    }
    if (recipe.attention == Attention::kRecomputeDropout) {
        return fail(
            "The recipe '{}' cannot recompute the dropout of attention with dropout=stock: choose "
            "dropout=tempo or attention=materialized.",
            w.recipe_name);
    }
    if (recipe.masks != Masks::kByte) {
        return fail(
            "The recipe '{}' sets masks={}, but dropout=stock keeps bytes: choose dropout=tempo "
            "or masks=byte.",
            w.recipe_name, kMasksNames[static_cast<std::size_t>(recipe.masks)]);
    }
    return {};
}

/// What exists on CUDA only, or is never run.
Result<void> validate_recipe_for_cpu(const Workload& workload, const Recipe& recipe) {
    const auto attention = kAttentionNames[static_cast<std::size_t>(recipe.attention)];
    if (recipe.attention == Attention::kEfficient || recipe.attention == Attention::kCudnn) {
        return fail(
            "The attention '{}' exists on CUDA only: choose materialized, recompute_dropout or "
            "flash on the CPU.",
            attention);
    }
    if (recipe.attention == Attention::kFlash && workload.model.attention_dropout_p > 0) {
        return fail(
            "The CPU's flash attention has no dropout: add --attention-dropout 0 to use the recipe "
            "'{}'.",
            workload.recipe_name);
    }
    if (recipe.kernels == Kernels::kPublished) {
        return fail(
            "The recipe '{}' is that of Tempo's 2022 release, which is predicted and never run: "
            "choose tempo, or --device predict:GPU.",
            workload.recipe_name);
    }
    if (recipe.fusion != Fusion::kNone) {
        return fail("The fusion '{}' is not available on the CPU: choose fusion=none.",
                    kFusionNames[static_cast<std::size_t>(recipe.fusion)]);
    }
    return {};
}

nlohmann::json model_to_json(const ModelConfig& m) {
    return {{"name", m.name},
            {"family", name_of(m.family)},
            {"hidden_size", m.hidden_size},
            {"num_layers", m.num_layers},
            {"num_heads", m.num_heads},
            {"intermediate_size", m.intermediate_size},
            {"vocab_size", m.vocab_size},
            {"max_position_embeddings", m.max_position_embeddings},
            {"first_position", m.first_position},
            {"type_vocab_size", m.type_vocab_size},
            {"hidden_dropout_p", m.hidden_dropout_p},
            {"attention_dropout_p", m.attention_dropout_p},
            {"layer_norm_eps", m.layer_norm_eps}};
}

template <typename Enum, std::size_t N>
Enum enum_from_json(const nlohmann::json& json, const char* key,
                    const std::array<std::string_view, N>& names) {
    const auto& word = json.at(key).get_ref<const std::string&>();
    if (const auto value = find_name<Enum>(names, word)) return *value;
    throw nlohmann::json::other_error::create(500, fmt::format("'{}' is not a {}", word, key),
                                              &json);
}

/// Refuses 1.5 and 1e300, which get<int64_t> would convert.
int64_t integer_from_json(const nlohmann::json& json, const char* key) {
    const nlohmann::json& value = json.at(key);
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (value.is_number_integer() &&
        !(value.is_number_unsigned() && value.get<uint64_t>() > kMax)) {
        return value.get<int64_t>();
    }
    throw nlohmann::json::other_error::create(500, fmt::format("{} is no whole number", key),
                                              &json);
}

ModelConfig model_from_json(const nlohmann::json& json) {
    ModelConfig m;
    json.at("name").get_to(m.name);
    m.family = enum_from_json<Family>(json, "family", kFamilyNames);
    m.hidden_size = integer_from_json(json, "hidden_size");
    m.num_layers = integer_from_json(json, "num_layers");
    m.num_heads = integer_from_json(json, "num_heads");
    m.intermediate_size = integer_from_json(json, "intermediate_size");
    m.vocab_size = integer_from_json(json, "vocab_size");
    m.max_position_embeddings = integer_from_json(json, "max_position_embeddings");
    m.type_vocab_size = integer_from_json(json, "type_vocab_size");
    // Files from before this field: RoBERTa alone had one token type.
    m.first_position = json.contains("first_position") ? integer_from_json(json, "first_position")
                       : m.type_vocab_size == 1        ? 2
                                                       : 0;
    json.at("hidden_dropout_p").get_to(m.hidden_dropout_p);
    json.at("attention_dropout_p").get_to(m.attention_dropout_p);
    json.at("layer_norm_eps").get_to(m.layer_norm_eps);
    return m;
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
        return fail("The precision tf32 exists on CUDA only: choose fp32 or bf16 on the CPU.");
    }
    return {};
}

nlohmann::json to_json(const Workload& w) {
    return {{"model", model_to_json(w.model)},
            {"head", name_of(w.head)},
            {"recipe_name", w.recipe_name},
            {"recipe", to_text(layer_recipes_of(w))},
            {"precision", name_of(w.precision)},
            {"batch_size", w.batch_size},
            {"seq_len", w.seq_len},
            {"padding", kPaddingNames[static_cast<std::size_t>(w.padding)]},
            {"seed", w.seed},
            {"learning_rate", w.learning_rate}};
}

Result<Workload> workload_from_json(const nlohmann::json& json) {
    try {
        Workload w;
        w.model = model_from_json(json.at("model"));
        w.head = enum_from_json<Head>(json, "head", kHeadNames);
        json.at("recipe_name").get_to(w.recipe_name);
        auto layer_recipes = parse_layer_recipes(json.at("recipe").get_ref<const std::string&>());
        if (!layer_recipes) return tl::unexpected(layer_recipes.error());
        w.recipe = layer_recipes->recipe;
        w.layer_recipes = std::move(layer_recipes->layers);
        w.precision = enum_from_json<Precision>(json, "precision", kPrecisionNames);
        w.batch_size = integer_from_json(json, "batch_size");
        w.seq_len = integer_from_json(json, "seq_len");
        w.padding = enum_from_json<Padding>(json, "padding", kPaddingNames);
        w.seed = integer_from_json(json, "seed");
        json.at("learning_rate").get_to(w.learning_rate);
        return w;
    } catch (const nlohmann::json::exception& error) {
        return fail(
            "The description of the workload cannot be read ({}): it was written by another "
            "version.",
            error.what());
    }
}

Result<Workload> with_recipe(Workload workload, std::string_view recipe) {
    auto layer_recipes = parse_layer_recipes(recipe);
    if (!layer_recipes) return tl::unexpected(layer_recipes.error());
    workload = with_recipe(std::move(workload), std::move(*layer_recipes));
    workload.recipe_name = recipe;
    return workload;
}

Workload with_recipe(Workload workload, LayerRecipes layer_recipes) {
    workload.recipe_name = to_text(layer_recipes);
    workload.recipe = layer_recipes.recipe;
    workload.layer_recipes = std::move(layer_recipes.layers);
    return workload;
}

LayerRecipes layer_recipes_of(const Workload& workload) {
    return {workload.recipe, workload.layer_recipes};
}

Workload workload_of_layer(const Workload& workload, int64_t layer) {
    Workload uniform = workload;
    uniform.recipe = recipe_of_layer(layer_recipes_of(workload), layer);
    uniform.layer_recipes.clear();
    return uniform;
}

std::vector<Recipe> recipes_in(const Workload& workload) {
    std::vector<Recipe> recipes{workload.recipe};
    for (const RecipeRange& one : workload.layer_recipes) {
        const Recipe recipe = recipe_of_layer(layer_recipes_of(workload), one.first_layer);
        if (std::find(recipes.begin(), recipes.end(), recipe) == recipes.end()) {
            recipes.push_back(recipe);
        }
    }
    return recipes;
}

bool comparable(const Workload& a, const Workload& b) {
    Workload other = b;
    other.recipe = a.recipe;
    other.layer_recipes = a.layer_recipes;
    other.recipe_name = a.recipe_name;
    return a == other;
}

}  // namespace models
