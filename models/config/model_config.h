#pragma once

#include "models/config/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The sizes of a Transformer, with the field names of Hugging Face configurations.
namespace models {

enum class Family : uint8_t {
    kBert,        // post-LN encoder, erf GELU; RoBERTa too
    kGpt2,        // pre-LN decoder, causal, tanh GELU
    kSubstation,  // Substation's encoder layer: ReLU, dropout inside the FFN, no mask
    kT5Encoder,   // pre-RMSNorm, no biases, relative position bias, ReLU with dropout after it
    kT5Decoder    // the same, causal, with attention to an encoder's output
};
inline constexpr std::array<std::string_view, 5> kFamilyNames{"bert", "gpt2", "substation",
                                                              "t5_encoder", "t5_decoder"};

enum class Head : uint8_t {
    kLayers,  // only the layer stack: input a leaf [B, S, H], loss = sum(output * fixed random)
    kMlm,     // masked language model (BERT, RoBERTa)
    kSquad,   // span prediction (BERT, RoBERTa)
    kLm       // next token (GPT-2)
};
inline constexpr std::array<std::string_view, 4> kHeadNames{"layers", "mlm", "squad", "lm"};

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

    bool is_t5() const { return family == Family::kT5Encoder || family == Family::kT5Decoder; }
    int64_t head_dim() const { return hidden_size / num_heads; }
    /// Of the dropout between the MLP's activation and its second linear layer.
    double inner_dropout_p() const {
        return family == Family::kSubstation || is_t5() ? hidden_dropout_p : 0.0;
    }
    friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// BERT and RoBERTa base/large, GPT-2 small/medium/large/xl, substation-encoder, the encoders and
/// decoders of T5 base/large.
const std::vector<ModelConfig>& model_presets();
/// Errors: an unknown name; the message lists the nearest names.
Result<ModelConfig> find_model(std::string_view name);

constexpr std::string_view name_of(Family f) { return kFamilyNames[static_cast<size_t>(f)]; }
constexpr std::string_view name_of(Head h) { return kHeadNames[static_cast<size_t>(h)]; }
Result<Head> parse_head(std::string_view name);

}  // namespace models
