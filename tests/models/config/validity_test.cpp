#include "models/config/validity.h"
#include "tests/models/config/sample_workloads.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace models {
namespace {

using testing::HasSubstr;
using tests::bert_large;

Workload workload(const char* recipe, Precision precision) {
    return {.model = *find_model("bert-base"),
            .recipe_name = recipe,
            .recipe = *parse_recipe(recipe),
            .precision = precision};
}

std::string problem(const Workload& w, ComputeCapability capability = {8, 0}) {
    const auto ok = validate_for_cuda(w, capability);
    return ok ? "" : ok.error().message;
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

TEST(Validate, ThePublishedImplementationIsPredictedAndNeverRun) {
    Workload published = *with_recipe(bert_large(), "tempo-published");
    EXPECT_TRUE(validate(published));
    EXPECT_TRUE(validate_for_prediction(published, {8, 0}));
    EXPECT_THAT(validate_for_cpu(published).error().message, HasSubstr("never run"));
    EXPECT_THAT(validate_for_cuda(published, {8, 0}).error().message,
                HasSubstr("implementation=published, which is predicted and never run"));
    EXPECT_THAT(validate(*with_recipe(published, "tempo-published,masks=bit")).error().message,
                HasSubstr("masks=byte"));
    Workload gpt2 = published;
    gpt2.model = *find_model("gpt2");
    EXPECT_THAT(validate(gpt2).error().message, HasSubstr("implementation=ours"));
}

struct BadWorkload {
    const char* name;
    std::function<void(Workload&)> spoil;
    const char* expected;
    const char* field;  // that the error names first
};

/// bert-large, or another model, with a recipe that is not for it.
BadWorkload of_recipe(const char* name, const char* recipe, const char* expected,
                      const char* model = "bert-large") {
    return {name,
            [=](Workload& w) {
                w.model = *find_model(model);
                w.recipe = *parse_recipe(recipe);
            },
            expected, "recipe"};
}

class ValidateRefuses : public testing::TestWithParam<BadWorkload> {};

TEST_P(ValidateRefuses, WithOneSentence) {
    Workload w = bert_large();
    GetParam().spoil(w);
    const auto ok = validate_for_cpu(w);
    ASSERT_FALSE(ok);
    EXPECT_THAT(ok.error().message, HasSubstr(GetParam().expected));
    EXPECT_EQ(ok.error().message.back(), '.');
    const std::string field = GetParam().field;
    ASSERT_EQ(ok.error().fields.empty(), field.empty());
    if (!field.empty()) {
        EXPECT_EQ(ok.error().fields.front(), field);
    }
    EXPECT_EQ(ok.error().message.find("--"), std::string::npos) << "names an option of a command";
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, ValidateRefuses,
    testing::Values(
        BadWorkload{"ZeroBatch", [](Workload& w) { w.batch_size = 0; }, "batch size is 0",
                    "batch_size"},
        BadWorkload{"NegativeSequence", [](Workload& w) { w.seq_len = -1; },
                    "sequence length is -1", "seq_len"},
        BadWorkload{"NoMicroBatch", [](Workload& w) { w.gradient_accumulation_steps = 0; },
                    "micro-batches is 0", "gradient_accumulation_steps"},
        BadWorkload{"HeadsDoNotDivide", [](Workload& w) { w.model.num_heads = 7; },
                    "7 heads do not divide", "num_heads"},
        BadWorkload{"SequenceOverPositions",
                    [](Workload& w) {
                        w.head = Head::kMlm;
                        w.seq_len = 513;
                    },
                    "over the 512 positions", "seq_len"},
        BadWorkload{"TooManyElements", [](Workload& w) { w.batch_size = 4096; }, "more than 2^31",
                    "batch_size"},
        BadWorkload{"SizeNearOverflow",
                    [](Workload& w) { w.batch_size = std::numeric_limits<int64_t>::max(); },
                    "at most 2^31", "batch_size"},
        BadWorkload{"BadProbability", [](Workload& w) { w.model.hidden_dropout_p = 1.5; },
                    "not between 0 and 1", "hidden_dropout_p"},
        BadWorkload{"NanProbability", [](Workload& w) { w.model.attention_dropout_p = NAN; },
                    "not between 0 and 1", "attention_dropout_p"},
        BadWorkload{"HeadOfAnotherFamily", [](Workload& w) { w.head = Head::kLm; },
                    "bert-large has no head 'lm': choose layers, mlm or squad.", "head"},
        BadWorkload{"HeadOfAnEncoder",
                    [](Workload& w) {
                        w.model = *find_model("gpt2");
                        w.head = Head::kMlm;
                    },
                    "gpt2 has no head 'mlm': choose layers or lm.", "head"},
        BadWorkload{"HeadOfOneLayer",
                    [](Workload& w) {
                        w.model = *find_model("substation-encoder");
                        w.head = Head::kLm;
                    },
                    "substation-encoder is a single layer without embeddings", "head"},
        of_recipe("CudaOnlyAttention", "attention=cudnn",
                  "attention=cudnn runs on CUDA only: on the CPU choose eager, recompute_dropout "
                  "or flash"),
        BadWorkload{"FlashWithDropout", [](Workload& w) { w.recipe.attention = Attention::kFlash; },
                    "set the attention dropout", "attention_dropout_p"},
        BadWorkload{"NegativePositions",
                    [](Workload& w) { w.model.max_position_embeddings = INT64_MIN; },
                    "number of positions", ""},
        BadWorkload{"FirstPositionBeyondAll",
                    [](Workload& w) { w.model.first_position = INT64_MAX; }, "first position", ""},
        BadWorkload{"CheckpointOfFlashAttention",
                    [](Workload& w) {
                        w.recipe.checkpoint = Checkpoint::kAttentionCore;
                        w.recipe.attention = Attention::kFlash;
                        w.model.attention_dropout_p = 0;
                    },
                    "attention=eager", "recipe"},
        BadWorkload{"FusionOfADecoder",
                    [](Workload& w) {
                        w.model = *find_model("gpt2");
                        w.head = Head::kLm;
                        w.recipe.fusion = Fusion::kSubstation;
                    },
                    "gpt2 normalizes before them: choose the recipe tempo-fused, or fusion=none",
                    "recipe"},
        of_recipe("SubstationWithAnotherLayerNorm", "fusion=substation,layer_norm=from_output",
                  "need layer_norm=original: add that, choose the recipe substation"),
        of_recipe("DeepSpeedWithAnotherGelu", "fusion=deepspeed,gelu=in_place",
                  "need gelu=original: add that, choose the recipe deepspeed-fused"),
        of_recipe("FusionWithAnotherGelu", "fusion=tempo", "choose the recipe tempo-fused"),
        of_recipe("FusionOfAModelWithRelu", "layer_norm=from_output,fusion=tempo",
                  "substation-encoder has ReLU", "substation-encoder"),
        of_recipe("StockDropoutRecomputed", "dropout=stock,attention=recompute_dropout",
                  "cannot recompute the dropout"),
        of_recipe("StockDropoutInBits", "dropout=stock,masks=bit",
                  "masks=bit, but dropout=stock stores masks as bytes"),
        of_recipe("StockDropoutRegenerated", "dropout=stock,masks=philox", "masks=philox"),
        of_recipe("GeluOfAModelWithRelu", "gelu=in_place", "substation-encoder has ReLU",
                  "substation-encoder"),
        of_recipe("RecomputedGeluOfAModelWithRelu", "gelu=recompute", "gelu=recompute",
                  "substation-encoder"),
        BadWorkload{"Tf32", [](Workload& w) { w.precision = Precision::kTf32; }, "CUDA only",
                    "precision"}),
    [](const auto& test) { return test.param.name; });

TEST(Validate, AcceptsEveryModelAtItsOwnSequenceLength) {
    for (const ModelConfig& model : model_presets()) {
        Workload w{.model = model, .batch_size = 1, .seq_len = 512};
        EXPECT_TRUE(validate_for_cpu(w)) << model.name;
    }
}

TEST(ValidateForCuda, TakesWhatTheCpuRefuses) {
    EXPECT_EQ(problem(workload("flash", Precision::kBf16)), "");
    EXPECT_EQ(problem(workload("attention=efficient", Precision::kFp32)), "");
    EXPECT_EQ(problem(workload("attention=cudnn", Precision::kAmpFp16)), "");
    EXPECT_EQ(problem(workload("original", Precision::kTf32)), "");
}

TEST(ValidateForCuda, RefusesWhatNoKernelTakes) {
    EXPECT_THAT(problem(workload("flash", Precision::kFp32)),
                HasSubstr("attention=flash has no fp32 kernel"));
    EXPECT_THAT(problem(workload("attention=efficient", Precision::kFp64)),
                HasSubstr("has no fp64 kernel"));
    EXPECT_THAT(problem(workload("flash", Precision::kFp32)),
                HasSubstr("choose the precision fp16 or bf16"));
    // A GPU that is too old for flash attention says so in every precision.
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
        EXPECT_THAT(problem(workload("flash", precision), {7, 5}),
                    HasSubstr("this GPU has 7.5: choose attention=efficient"));
    }
    EXPECT_EQ(problem(workload("attention=efficient", Precision::kFp32), {7, 5}), "");
    EXPECT_THAT(problem(workload("original", Precision::kTf32), {7, 5}), HasSubstr("choose fp32"));
    EXPECT_THAT(problem(workload("original", Precision::kAmpBf16), {7, 5}), HasSubstr("no bf16"));
    EXPECT_EQ(problem(workload("original", Precision::kFp16), {7, 0}), "");
    Workload odd = workload("flash", Precision::kBf16);
    odd.model.num_heads = 64;  // heads of 12
    EXPECT_THAT(problem(odd), HasSubstr("multiple of 8"));
    odd = workload("flash", Precision::kBf16);
    odd.padding = Padding::kRandom;
    EXPECT_THAT(problem(odd), HasSubstr("no padding mask"));
    odd = workload("original", Precision::kFp32);
    odd.batch_size = 0;
    EXPECT_NE(problem(odd), "");
}

}  // namespace
}  // namespace models
