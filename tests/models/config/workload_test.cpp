#include "models/config/workload.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <limits>

namespace models {
namespace {

using testing::HasSubstr;

Workload bert_large() { return {.model = *find_model("bert-large")}; }

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

TEST(Workload, JsonWithNumbersThatAreNoWholeNumbersIsRefused) {
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

/// RoBERTa's first position is 2 also in files from before it was written down.
TEST(Workload, JsonWithoutAFirstPositionGetsThatOfItsModel) {
    for (const char* name : {"roberta-base", "bert-base", "gpt2"}) {
        const Workload w{.model = *find_model(name)};
        nlohmann::json json = to_json(w);
        json["model"].erase("first_position");
        EXPECT_EQ(*workload_from_json(json), w) << name;
    }
}

TEST(Validate, CountsOnlyThePositionsThatTokensCanHave) {
    Workload w{.model = *find_model("roberta-base"), .head = Head::kMlm, .seq_len = 512};
    EXPECT_TRUE(validate(w));
    w.seq_len = 513;
    EXPECT_THAT(validate(w).error().message, HasSubstr("over the 512 positions"));
}

TEST(Validate, AcceptsEveryPresetWithAModelThatHasItsOps) {
    for (const RecipePreset& preset : recipe_presets()) {
        Workload w = bert_large();
        w.recipe = preset.recipe;
        EXPECT_TRUE(validate(w)) << preset.name;
    }
}

TEST(Validate, ThePublishedKernelsAreNoneThatRuns) {
    const Workload published = *with_recipe(bert_large(), "tempo-published");
    EXPECT_TRUE(validate(published));
    EXPECT_THAT(validate_for_cpu(published).error().message, HasSubstr("never run"));
    EXPECT_THAT(validate(*with_recipe(published, "tempo-published,masks=bit")).error().message,
                HasSubstr("masks=byte"));
    Workload gpt2 = published;
    gpt2.model = *find_model("gpt2");
    EXPECT_THAT(validate(gpt2).error().message, HasSubstr("kernels=ours"));
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

struct BadWorkload {
    const char* name;
    std::function<void(Workload&)> spoil;
    const char* expected;
};

class ValidateRefuses : public testing::TestWithParam<BadWorkload> {};

TEST_P(ValidateRefuses, WithOneSentence) {
    Workload w = bert_large();
    GetParam().spoil(w);
    const auto ok = validate_for_cpu(w);
    ASSERT_FALSE(ok);
    EXPECT_THAT(ok.error().message, HasSubstr(GetParam().expected));
    EXPECT_EQ(ok.error().message.back(), '.');
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, ValidateRefuses,
    testing::Values(
        BadWorkload{"ZeroBatch", [](Workload& w) { w.batch_size = 0; }, "batch size is 0"},
        BadWorkload{"NegativeSequence", [](Workload& w) { w.seq_len = -1; },
                    "sequence length is -1"},
        BadWorkload{"HeadsDoNotDivide", [](Workload& w) { w.model.num_heads = 7; },
                    "7 heads do not divide"},
        BadWorkload{"SequenceOverPositions",
                    [](Workload& w) {
                        w.head = Head::kMlm;
                        w.seq_len = 513;
                    },
                    "over the 512 positions"},
        BadWorkload{"TooManyElements", [](Workload& w) { w.batch_size = 4096; }, "more than 2^31"},
        BadWorkload{"SizeNearOverflow",
                    [](Workload& w) { w.batch_size = std::numeric_limits<int64_t>::max(); },
                    "at most 2^31"},
        BadWorkload{"BadProbability", [](Workload& w) { w.model.hidden_dropout_p = 1.5; },
                    "not between 0 and 1"},
        BadWorkload{"NanProbability", [](Workload& w) { w.model.attention_dropout_p = NAN; },
                    "not between 0 and 1"},
        BadWorkload{"HeadOfAnotherFamily", [](Workload& w) { w.head = Head::kLm; },
                    "does not belong to bert-large"},
        BadWorkload{"CudaOnlyAttention",
                    [](Workload& w) { w.recipe.attention = Attention::kCudnn; }, "CUDA only"},
        BadWorkload{"FlashWithDropout", [](Workload& w) { w.recipe.attention = Attention::kFlash; },
                    "--attention-dropout 0"},
        BadWorkload{"NegativePositions",
                    [](Workload& w) { w.model.max_position_embeddings = INT64_MIN; },
                    "number of positions"},
        BadWorkload{"FirstPositionBeyondAll",
                    [](Workload& w) { w.model.first_position = INT64_MAX; }, "first position"},
        BadWorkload{"CheckpointOfNothing",
                    [](Workload& w) { w.recipe.checkpoint = Checkpoint::kAttentionCore; },
                    "checkpoint=attention_core, which nothing implements"},
        BadWorkload{"StockDropoutUnderACheckpoint",
                    [](Workload& w) {
                        w.recipe.dropout = Dropout::kStock;
                        w.recipe.checkpoint = Checkpoint::kPerLayer;
                    },
                    "gradients wrong"},
        BadWorkload{"StockDropoutUnderSqrtCheckpoints",
                    [](Workload& w) {
                        w.recipe.dropout = Dropout::kStock;
                        w.recipe.checkpoint = Checkpoint::kSqrt;
                    },
                    "gradients wrong"},
        BadWorkload{"StockDropoutRecomputed",
                    [](Workload& w) {
                        w.recipe.dropout = Dropout::kStock;
                        w.recipe.attention = Attention::kRecomputeDropout;
                    },
                    "cannot recompute the dropout"},
        BadWorkload{"StockDropoutInBits",
                    [](Workload& w) {
                        w.recipe.dropout = Dropout::kStock;
                        w.recipe.masks = Masks::kBit;
                    },
                    "masks=bit, but dropout=stock keeps bytes"},
        BadWorkload{"StockDropoutRegenerated",
                    [](Workload& w) {
                        w.recipe.dropout = Dropout::kStock;
                        w.recipe.masks = Masks::kPhilox;
                    },
                    "masks=philox"},
        BadWorkload{"GeluOfAModelWithRelu",
                    [](Workload& w) {
                        w.model = *find_model("substation-encoder");
                        w.recipe.gelu = Gelu::kInPlace;
                    },
                    "substation-encoder has ReLU"},
        BadWorkload{"RecomputedGeluOfAModelWithRelu",
                    [](Workload& w) {
                        w.model = *find_model("substation-encoder");
                        w.recipe.gelu = Gelu::kRecompute;
                    },
                    "gelu=recompute"},
        BadWorkload{"Tf32", [](Workload& w) { w.precision = Precision::kTf32; }, "CUDA only"}),
    [](const auto& test) { return test.param.name; });

TEST(Validate, AcceptsEveryModelAtItsOwnSequenceLength) {
    for (const ModelConfig& model : model_presets()) {
        Workload w{.model = model, .batch_size = 1, .seq_len = 512};
        EXPECT_TRUE(validate_for_cpu(w)) << model.name;
    }
}

}  // namespace
}  // namespace models
