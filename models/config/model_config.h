#pragma once

#include "models/config/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A model: its family, which says what its layers are made of, and its sizes, with the field names
/// of Hugging Face configurations.
namespace models {

enum class Family : uint8_t { kBert, kGpt2, kSubstation, kT5Encoder, kT5Decoder };
inline constexpr std::array<std::string_view, 5> kFamilyNames{"bert", "gpt2", "substation",
                                                              "t5_encoder", "t5_decoder"};

enum class Head : uint8_t {
    kLayers,  // only the layer stack: input a leaf [B, S, H], loss = sum(output * fixed random)
    kMlm,     // masked language model (BERT, RoBERTa)
    kSquad,   // span prediction (BERT, RoBERTa)
    kLm       // next token (GPT-2)
};
inline constexpr std::array<std::string_view, 4> kHeadNames{"layers", "mlm", "squad", "lm"};

// ---- what the layers of a family are made of -------------------------------------------------

enum class NormPlace : uint8_t {
    kAfter,  // the residual: post-LN
    kBefore  // the attention and the MLP: pre-LN
};
enum class Norm : uint8_t { kLayerNorm, kRmsNorm };
enum class Activation : uint8_t { kGelu, kTanhGelu, kRelu };
enum class Positions : uint8_t {
    kEmbedding,  // added to the word's
    kRelative    // a bias that each layer adds to its scores, which it does not scale
};

/// Hugging Face's names of modules. Those of a layer are relative to it.
struct EmbeddingNames {
    std::string_view module;  // around the ops of the others
    std::string_view word, position;
    std::string_view token_type = {};  // empty: the family has none
    std::string_view norm = {};        // below `module`; empty: none
    std::string_view dropout = {};     // below `module`
};
struct AttentionNames {
    std::string_view attention;  // from the projections to the context
    std::string_view output, dropout, norm;
    std::string_view sum;    // adds the residual; empty: the layer itself
    std::string_view input;  // what the tensor is called that the projections multiply
};
struct MlpNames {
    std::string_view up, activation, inner_dropout, down, dropout, norm;
    std::string_view sum;    // likewise
    std::string_view input;  // of the first linear layer
};

/// What code asks about a model's layers, and never which family they are of. To add a family, add
/// its enumerator, its row in model_config.cpp and the ops that no other family has.
struct FamilyTraits {
    Family family = Family::kBert;
    std::span<const Head> heads;  // beside the layers alone, the usual one first
    bool has_padding = true;      // its attention may have a mask of padding
    bool takes_switches = true;   // a recipe may change its GELU, LayerNorm and attention
    NormPlace norm_place = NormPlace::kAfter;
    Norm norm = Norm::kLayerNorm;
    bool has_biases = true;  // of the layers' linear layers
    Activation activation = Activation::kGelu;
    bool has_inner_dropout = false;  // between the activation and the second linear layer
    Positions positions = Positions::kEmbedding;
    bool has_fp32_softmax = false;  // of 16-bit scores, cast back
    bool is_causal = false;
    EmbeddingNames embeddings = {};
    std::string_view final_norm = {};             // of a whole model, after its layers; empty: none
    std::string_view layers;                      // the path of a layer without its number
    std::array<std::string_view, 3> projections;  // to query, key and value
    std::string_view stacked_projection = {};     // their one product; empty: the model has three
    AttentionNames attention;
    std::optional<AttentionNames> cross_attention = std::nullopt;  // to an encoder's output
    MlpNames mlp;

    bool is_pre_norm() const { return norm_place == NormPlace::kBefore; }
};
const FamilyTraits& traits_of(Family family);

/// In the words of the ops: "tanh_gelu".
constexpr std::string_view name_of(Activation a) {
    constexpr std::array<std::string_view, 3> kNames{"gelu", "tanh_gelu", "relu"};
    return kNames[static_cast<size_t>(a)];
}

// ---- one model -------------------------------------------------------------------------------

struct ModelConfig {
    std::string name = "custom";
    Family family = Family::kBert;
    int64_t hidden_size = 768;         // H
    int64_t num_layers = 12;           // L
    int64_t num_heads = 12;            // A
    int64_t intermediate_size = 3072;  // I
    int64_t vocab_size = 30522;        // V
    int64_t max_position_embeddings = 512;
    int64_t first_position = 0;   // position id of the first token; lower ids are never used
    int64_t type_vocab_size = 2;  // 0: no token type embedding
    double hidden_dropout_p = 0.1;
    double attention_dropout_p = 0.1;
    double layer_norm_eps = 1e-12;

    const FamilyTraits& traits() const { return traits_of(family); }
    int64_t head_dim() const { return hidden_size / num_heads; }
    /// Of the dropout between the MLP's activation and its second linear layer.
    double inner_dropout_p() const { return traits().has_inner_dropout ? hidden_dropout_p : 0.0; }
    friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// A size of a model: its name in files, and the words for it in a sentence.
struct ModelSize {
    std::string_view field, words;
    int64_t ModelConfig::*member;
    int64_t lowest = 1;
    bool is_optional = false;  // files of older versions lack it
};
inline constexpr std::array kModelSizes{
    ModelSize{"num_layers", "number of layers", &ModelConfig::num_layers},
    ModelSize{"hidden_size", "hidden size", &ModelConfig::hidden_size},
    ModelSize{"num_heads", "number of heads", &ModelConfig::num_heads},
    ModelSize{"intermediate_size", "intermediate size", &ModelConfig::intermediate_size},
    ModelSize{"vocab_size", "vocabulary size", &ModelConfig::vocab_size},
    ModelSize{"max_position_embeddings", "number of positions",
              &ModelConfig::max_position_embeddings, 0},
    ModelSize{"first_position", "first position", &ModelConfig::first_position, 0, true},
    ModelSize{"type_vocab_size", "number of token types", &ModelConfig::type_vocab_size, 0}};

/// BERT and RoBERTa base/large, GPT-2 small/medium/large/xl, substation-encoder, the encoders and
/// decoders of T5 base/large.
const std::vector<ModelConfig>& model_presets();
/// Errors: an unknown name; the message lists the nearest names.
Result<ModelConfig> find_model(std::string_view name);

constexpr std::string_view name_of(Family f) { return kFamilyNames[static_cast<size_t>(f)]; }
constexpr std::string_view name_of(Head h) { return kHeadNames[static_cast<size_t>(h)]; }
Result<Head> parse_head(std::string_view name);

}  // namespace models
