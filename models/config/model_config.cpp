#include "models/config/model_config.h"

#include "models/config/names.h"

#include <fmt/ranges.h>

namespace models {
namespace {

// ---- families --------------------------------------------------------------------------------

constexpr std::array kEncoderHeads{Head::kMlm, Head::kSquad};
constexpr std::array kDecoderHeads{Head::kLm};

/// Devlin et al. 2018; Hugging Face's RoBERTa has the same layers in other sizes.
constexpr FamilyTraits kBert{.family = Family::kBert,
                             .heads = kEncoderHeads,
                             .embeddings = {.module = "embeddings",
                                            .word = "embeddings.word_embeddings",
                                            .position = "embeddings.position_embeddings",
                                            .token_type = "embeddings.token_type_embeddings",
                                            .norm = "LayerNorm",
                                            .dropout = "dropout"},
                             .layers = "encoder.layer.",
                             .projections = {"query", "key", "value"},
                             .attention = {.attention = "attention.self",
                                           .output = "attention.output.dense",
                                           .dropout = "attention.output.dropout",
                                           .norm = "attention.output.LayerNorm",
                                           .sum = "attention.output",
                                           .input = "hidden_states"},
                             .mlp = {.up = "intermediate.dense",
                                     .activation = "intermediate.intermediate_act_fn",
                                     .inner_dropout = "intermediate.dropout",
                                     .down = "output.dense",
                                     .dropout = "output.dropout",
                                     .norm = "output.LayerNorm",
                                     .sum = "output",
                                     .input = "attention_output"}};

/// Radford et al. 2019.
constexpr FamilyTraits kGpt2{
    .family = Family::kGpt2,
    .heads = kDecoderHeads,
    .norm_place = NormPlace::kBefore,
    .activation = Activation::kTanhGelu,
    .is_causal = true,
    .embeddings = {.module = "wte", .word = "wte", .position = "wpe", .dropout = "drop"},
    .final_norm = "ln_f",
    .layers = "h.",
    .projections = {"query", "key", "value"},
    .stacked_projection = "c_attn",
    .attention = {.attention = "attn",
                  .output = "attn.c_proj",
                  .dropout = "attn.resid_dropout",
                  .norm = "ln_1",
                  .input = "ln_1_output"},
    .mlp = {.up = "mlp.c_fc",
            .activation = "mlp.act",
            .down = "mlp.c_proj",
            .dropout = "mlp.dropout",
            .norm = "ln_2",
            .input = "ln_2_output"}};

/// The layer that Ivanov et al. measured (arXiv 2007.00072): BERT's with ReLU.
constexpr FamilyTraits substation_traits() {
    FamilyTraits traits = kBert;
    traits.family = Family::kSubstation;
    traits.heads = {};
    traits.activation = Activation::kRelu;
    traits.has_inner_dropout = true;
    return traits;
}

/// Raffel et al. 2019 (arXiv 1910.10683).
constexpr FamilyTraits kT5Encoder{.family = Family::kT5Encoder,
                                  .has_padding = false,
                                  .takes_switches = false,
                                  .norm_place = NormPlace::kBefore,
                                  .norm = Norm::kRmsNorm,
                                  .has_biases = false,
                                  .activation = Activation::kRelu,
                                  .has_inner_dropout = true,
                                  .positions = Positions::kRelative,
                                  .has_fp32_softmax = true,
                                  .layers = "encoder.block.",
                                  .projections = {"q", "k", "v"},
                                  .attention = {.attention = "layer.0.SelfAttention",
                                                .output = "layer.0.SelfAttention.o",
                                                .dropout = "layer.0.dropout",
                                                .norm = "layer.0.layer_norm",
                                                .sum = "layer.0",
                                                .input = "attention_input"},
                                  .mlp = {.up = "layer.1.DenseReluDense.wi",
                                          .activation = "layer.1.DenseReluDense.act",
                                          .inner_dropout = "layer.1.DenseReluDense.dropout",
                                          .down = "layer.1.DenseReluDense.wo",
                                          .dropout = "layer.1.dropout",
                                          .norm = "layer.1.layer_norm",
                                          .sum = "layer.1",
                                          .input = "mlp_input"}};

/// The encoder's layer, causal, with attention to an encoder's output before the MLP.
constexpr FamilyTraits t5_decoder_traits() {
    FamilyTraits traits = kT5Encoder;
    traits.family = Family::kT5Decoder;
    traits.is_causal = true;
    traits.layers = "decoder.block.";
    traits.cross_attention = AttentionNames{.attention = "layer.1.EncDecAttention",
                                            .output = "layer.1.EncDecAttention.o",
                                            .dropout = "layer.1.dropout",
                                            .norm = "layer.1.layer_norm",
                                            .sum = "layer.1",
                                            .input = "cross_attention_input"};
    traits.mlp = {.up = "layer.2.DenseReluDense.wi",
                  .activation = "layer.2.DenseReluDense.act",
                  .inner_dropout = "layer.2.DenseReluDense.dropout",
                  .down = "layer.2.DenseReluDense.wo",
                  .dropout = "layer.2.dropout",
                  .norm = "layer.2.layer_norm",
                  .sum = "layer.2",
                  .input = "mlp_input"};
    return traits;
}

constexpr std::array<FamilyTraits, kFamilyNames.size()> kFamilies{kBert, kGpt2, substation_traits(),
                                                                  kT5Encoder, t5_decoder_traits()};
static_assert([] {
    for (std::size_t i = 0; i < kFamilies.size(); ++i) {
        if (kFamilies[i].family != static_cast<Family>(i)) return false;
        if (name_of(kFamilies[i].activation).empty()) return false;  // none: no constant
    }
    return true;
}());

// ---- presets ---------------------------------------------------------------------------------

ModelConfig bert(std::string name, int64_t hidden_size, int64_t num_layers) {
    return {.name = std::move(name),
            .family = Family::kBert,
            .hidden_size = hidden_size,
            .num_layers = num_layers,
            .num_heads = hidden_size / 64,
            .intermediate_size = 4 * hidden_size};
}

/// RoBERTa reserves two position ids, has one token type and a larger vocabulary.
ModelConfig roberta(std::string name, int64_t hidden_size, int64_t num_layers) {
    ModelConfig config = bert(std::move(name), hidden_size, num_layers);
    config.vocab_size = 50265;
    config.max_position_embeddings = 514;
    config.first_position = 2;  // padding_idx + 1
    config.type_vocab_size = 1;
    config.layer_norm_eps = 1e-5;
    return config;
}

ModelConfig gpt2(std::string name, int64_t hidden_size, int64_t num_layers) {
    return {.name = std::move(name),
            .family = Family::kGpt2,
            .hidden_size = hidden_size,
            .num_layers = num_layers,
            .num_heads = hidden_size / 64,
            .intermediate_size = 4 * hidden_size,
            .vocab_size = 50257,
            .max_position_embeddings = 1024,
            .type_vocab_size = 0,
            .layer_norm_eps = 1e-5};
}

/// BERT-large's sizes, one layer.
ModelConfig substation_encoder() {
    ModelConfig config = bert("substation-encoder", 1024, 1);
    config.family = Family::kSubstation;
    config.layer_norm_eps = 1e-5;
    return config;
}

/// One stack of T5: 64 features a head, as in t5-base and t5-large.
ModelConfig t5(std::string name, Family family, int64_t hidden_size, int64_t num_layers) {
    return {.name = std::move(name),
            .family = family,
            .hidden_size = hidden_size,
            .num_layers = num_layers,
            .num_heads = hidden_size / 64,
            .intermediate_size = 4 * hidden_size,
            .vocab_size = 32128,
            .max_position_embeddings = 512,
            .type_vocab_size = 0,
            .layer_norm_eps = 1e-6};
}

}  // namespace

const FamilyTraits& traits_of(Family family) { return kFamilies[static_cast<std::size_t>(family)]; }

const std::vector<ModelConfig>& model_presets() {
    static const std::vector<ModelConfig> presets{
        bert("bert-base", 768, 12),
        bert("bert-large", 1024, 24),
        roberta("roberta-base", 768, 12),
        roberta("roberta-large", 1024, 24),
        gpt2("gpt2", 768, 12),
        gpt2("gpt2-medium", 1024, 24),
        gpt2("gpt2-large", 1280, 36),
        gpt2("gpt2-xl", 1600, 48),
        substation_encoder(),
        t5("t5-base-encoder", Family::kT5Encoder, 768, 12),
        t5("t5-base-decoder", Family::kT5Decoder, 768, 12),
        t5("t5-large-encoder", Family::kT5Encoder, 1024, 24),
        t5("t5-large-decoder", Family::kT5Decoder, 1024, 24)};
    return presets;
}

Result<ModelConfig> find_model(std::string_view name) {
    std::vector<std::string_view> names;
    for (const ModelConfig& preset : model_presets()) {
        if (is_same_name(name, preset.name)) return preset;
        names.push_back(preset.name);
    }
    return fail_fields({"hidden_size", "num_heads", "num_layers"},
                       "'{}' is no model that is built in: did you mean {}? A program with a model "
                       "of its own runs with temposcope run. For another size, start from one of "
                       "these models and set its hidden size, heads and layers.",
                       name, fmt::join(nearest_names(name, names), ", "));
}

Result<Head> parse_head(std::string_view name) {
    return parse_name<Head>(kHeadNames, name, "head");
}

}  // namespace models
