#include "models/config/model_config.h"

#include "models/config/names.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace models {
namespace {

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

/// The layer that Ivanov et al. measured: BERT-large's sizes, one layer.
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
