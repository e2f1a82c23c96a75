#include "models/config/workload.h"
#include "tests/models/config/sample_workloads.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace models {
namespace {

using testing::HasSubstr;
using tests::bert_large;

TEST(FindModel, KnowsThePublishedSizes) {
    EXPECT_EQ(find_model("bert-large")->hidden_size, 1024);
    EXPECT_EQ(find_model("gpt2-xl")->num_layers, 48);
    EXPECT_EQ(find_model("roberta-base")->vocab_size, 50265);
    EXPECT_THAT(find_model("bert-lage").error().message, HasSubstr("did you mean bert-large"));
}

TEST(Workload, ComesBackFromItsJson) {
    Workload w = bert_large();
    w.head = Head::kMlm;
    w.recipe = *parse_recipe("tempo-packed");
    w.recipe_name = "tempo-packed";
    w.precision = Precision::kBf16;
    w.padding = Padding::kRandom;
    w.seed = 7;
    w.gradient_accumulation_steps = 4;
    EXPECT_EQ(*workload_from_json(to_json(w)), w);
}

TEST(Workload, JsonOfAnotherVersionIsRefusedInOneSentence) {
    nlohmann::json json = to_json(bert_large());
    json.erase("precision");
    EXPECT_THAT(workload_from_json(json).error().message, HasSubstr("another version"));
    EXPECT_FALSE(workload_from_json(nlohmann::json::array()));
    json = to_json(bert_large());
    json["head"] = "pooler";
    EXPECT_FALSE(workload_from_json(json));
}

TEST(Workload, JsonWithFractionsForWholeNumbersIsRefused) {
    for (const nlohmann::json& bad :
         {nlohmann::json(1.5), nlohmann::json(1e300), nlohmann::json(true), nlohmann::json("8"),
          nlohmann::json(std::numeric_limits<uint64_t>::max())}) {
        nlohmann::json json = to_json(bert_large());
        json["batch_size"] = bad;
        EXPECT_FALSE(workload_from_json(json)) << bad;
        json = to_json(bert_large());
        json["model"]["hidden_size"] = bad;
        EXPECT_FALSE(workload_from_json(json)) << bad;
    }
}

/// RoBERTa's first position is 2, also in files that do not state it.
TEST(Workload, JsonWithoutAFirstPositionGetsItsModels) {
    for (const char* name : {"roberta-base", "bert-base", "gpt2"}) {
        const Workload w{.model = *find_model(name)};
        nlohmann::json json = to_json(w);
        json["model"].erase("first_position");
        EXPECT_EQ(*workload_from_json(json), w) << name;
    }
}

TEST(Workload, JsonOfOlderFilesHasOneMicroBatchAStep) {
    nlohmann::json json = to_json(bert_large());
    json.erase("gradient_accumulation_steps");
    EXPECT_EQ(*workload_from_json(json), bert_large());
}

TEST(Workload, TrainsABatchInEachMicroBatch) {
    Workload w = bert_large();
    w.batch_size = 6;
    w.gradient_accumulation_steps = 4;
    EXPECT_EQ(sequences_per_step(w), 24);
    EXPECT_FALSE(comparable(bert_large(), w));
}

TEST(Workload, IsComparableWhenOnlyTheRecipeDiffers) {
    Workload tempo = *with_recipe(bert_large(), "tempo");
    EXPECT_EQ(tempo.recipe_name, "tempo");
    EXPECT_EQ(tempo.recipe, *parse_recipe("tempo"));
    EXPECT_TRUE(comparable(bert_large(), tempo));
    EXPECT_FALSE(with_recipe(bert_large(), "temp"));
    tempo.batch_size = 9;
    EXPECT_FALSE(comparable(bert_large(), tempo));
}

}  // namespace
}  // namespace models
