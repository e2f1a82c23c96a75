#include "models/config/model_file.h"

#include "models/config/validity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace models {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

ModelConfig parsed(const std::string& text, const std::string& file = "/models/mine/config.json") {
    auto model = parse_model_file(text, file);
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    return model ? *model : ModelConfig{};
}

/// The sizes of a preset under another name.
void expect_same(ModelConfig model, std::string_view preset) {
    model.name = preset;
    EXPECT_EQ(model, find_model(preset).value()) << preset;
}

/// Of google-bert/bert-large-uncased.
TEST(ModelFile, OfBertHasTheSizesOfThePreset) {
    const ModelConfig model = parsed(R"({
        "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 1024,
        "initializer_range": 0.02, "intermediate_size": 4096, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 16,
        "num_hidden_layers": 24, "pad_token_id": 0, "position_embedding_type": "absolute",
        "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522})");
    EXPECT_EQ(model.name, "mine");
    expect_same(model, "bert-large");
}

TEST(ModelFile, OfRobertaSkipsThePositionsOfPadding) {
    expect_same(parsed(R"({"model_type": "roberta", "hidden_size": 768, "layer_norm_eps": 1e-05,
                          "max_position_embeddings": 514, "num_attention_heads": 12,
                          "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1,
                          "vocab_size": 50265})"),
                "roberta-base");
}

/// Of openai-community/gpt2-xl.
TEST(ModelFile, OfGpt2HasItsOwnKeys) {
    expect_same(parsed(R"({"activation_function": "gelu_new", "attn_pdrop": 0.1, "embd_pdrop": 0.1,
                          "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
                          "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
                          "n_inner": null, "resid_pdrop": 0.1, "vocab_size": 50257})"),
                "gpt2-xl");
}

/// transformers writes what differs from its own defaults.
TEST(ModelFile, TakesTheDefaultsOfTransformersForWhatIsMissing) {
    expect_same(parsed(R"({"model_type": "bert"})"), "bert-base");
    expect_same(parsed(R"({"model_type": "gpt2"})"), "gpt2");
    EXPECT_EQ(parsed(R"({"model_type": "gpt2", "n_embd": 512})").intermediate_size, 2048);
    EXPECT_EQ(parsed(R"({"model_type": "bert", "hidden_dropout_prob": 0})").hidden_dropout_p, 0);
    EXPECT_EQ(parsed(R"({"model_type": "bert"})", "tiny.json").name, "tiny");
}

TEST(ModelFile, SaysInOneSentenceWhatItCannotTake) {
    for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
             {R"({"model_type": "llama"})", "'llama' is not built in"},
             {R"({"model_type": "t5"})", "temposcope run"},
             {R"({"hidden_size": 8})", "no 'model_type'"},
             {R"({"model_type": 7})", "no 'model_type'"},
             {R"({"model_type": "bert")", "no JSON object"},
             {"[]", "no JSON object"},
             {"", "no JSON object"},
             {R"({"model_type": "bert", "hidden_size": "big"})",
              "'hidden_size' is no whole number"},
             {R"({"model_type": "bert", "vocab_size": 1.5})", "'vocab_size' is no whole number"},
             {R"({"model_type": "bert", "layer_norm_eps": []})", "'layer_norm_eps' is no number"},
             {R"({"model_type": "bert", "hidden_act": "relu"})", "have \"gelu\""},
             {R"({"model_type": "bert", "is_decoder": true})", "'is_decoder' is true"},
             {R"({"model_type": "gpt2", "embd_pdrop": 0.2})", "'embd_pdrop' is 0.2"},
             {R"({"model_type": "gpt2", "tie_word_embeddings": false})", "have true"}}) {
        const auto model = parse_model_file(text, "config.json");
        ASSERT_FALSE(model.has_value()) << text;
        EXPECT_THAT(model.error().message, HasSubstr(part));
        EXPECT_THAT(model.error().message, HasSubstr("config.json"));
        EXPECT_THAT(model.error().message, EndsWith("."));
    }
}

TEST(ModelFile, SizesThatMakeNoSenseAreLeftToTheChecksOfWorkloads) {
    Workload workload;
    workload.model = parsed(R"({"model_type": "gpt2", "n_embd": 9223372036854775807})");
    EXPECT_FALSE(validate(workload).has_value());
    workload.model = parsed(R"({"model_type": "bert", "num_attention_heads": 0})");
    EXPECT_FALSE(validate(workload).has_value());
}

TEST(ModelFile, IsReadWhereANameEndsInJson) {
    const auto folder = std::filesystem::temp_directory_path() / "temposcope_model_file_test";
    std::filesystem::create_directories(folder / "small");
    const std::string file = folder / "small" / "config.json";
    EXPECT_THAT(model_from(file).error().message, HasSubstr("cannot be read"));
    std::ofstream(file) << R"({"model_type": "bert", "num_hidden_layers": 2})";
    EXPECT_EQ(model_from(file)->num_layers, 2);
    EXPECT_EQ(model_from(file)->name, "small");
    std::ofstream(file) << std::string(std::size_t{2} << 20, ' ');
    EXPECT_THAT(model_from(file).error().message, HasSubstr("more than 1 MiB"));
    EXPECT_EQ(model_from("bert-base")->name, "bert-base");
    EXPECT_FALSE(model_from("bert-bas").has_value());
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace models
