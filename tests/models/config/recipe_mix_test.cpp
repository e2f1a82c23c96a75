#include "models/config/recipe_mix.h"

#include "models/config/cuda_support.h"
#include "models/config/workload.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace models {
namespace {

using testing::HasSubstr;

Recipe recipe(std::string_view text) { return parse_recipe(text).value(); }

TEST(RecipeMix, OfOnePartIsThatRecipeInAllLayers) {
    for (const RecipePreset& preset : recipe_presets()) {
        const auto mix = parse_recipe_mix(preset.name);
        ASSERT_TRUE(mix) << preset.name;
        EXPECT_EQ(*mix, (RecipeMix{.recipe = preset.recipe, .layers = {}}));
        EXPECT_EQ(to_text(*mix), to_text(preset.recipe));
    }
}

TEST(RecipeMix, GivesRangesOfLayersAPresetOrSwitches) {
    const auto mix = parse_recipe_mix("masks=bit+attention=recompute_dropout@0-11+tempo@20");
    ASSERT_TRUE(mix) << mix.error().message;
    EXPECT_EQ(recipe_of_layer(*mix, 0), recipe("masks=bit,attention=recompute_dropout"));
    EXPECT_EQ(recipe_of_layer(*mix, 11), recipe("masks=bit,attention=recompute_dropout"));
    EXPECT_EQ(recipe_of_layer(*mix, 12), recipe("masks=bit"));
    EXPECT_EQ(recipe_of_layer(*mix, 20), recipe("tempo"));
    EXPECT_EQ(recipe_of_layer(*mix, 21), recipe("masks=bit"));
}

TEST(RecipeMix, WithoutABaseIsOriginalElsewhere) {
    const auto mix = parse_recipe_mix("tempo@0-11+checkpoint@12-23");
    ASSERT_TRUE(mix);
    EXPECT_EQ(mix->recipe, Recipe{});
    EXPECT_EQ(recipe_of_layer(*mix, 12), recipe("checkpoint"));
    EXPECT_EQ(recipe_of_layer(*mix, 24), Recipe{});
}

TEST(RecipeMix, LaterPartsChangeEarlierOnes) {
    const auto mix = parse_recipe_mix("gelu=in_place@0-5+masks=bit@3-8");
    ASSERT_TRUE(mix);
    EXPECT_EQ(recipe_of_layer(*mix, 2), recipe("gelu=in_place"));
    EXPECT_EQ(recipe_of_layer(*mix, 4), recipe("gelu=in_place,masks=bit"));
    EXPECT_EQ(recipe_of_layer(*mix, 8), recipe("masks=bit"));
}

TEST(RecipeMix, IsCanonicalHoweverItWasWritten) {
    const auto split = parse_recipe_mix("original+gelu=in_place@3+gelu=in_place@4-7");
    ASSERT_TRUE(split);
    EXPECT_EQ(*split, *parse_recipe_mix("gelu=in_place@3-7"));
    EXPECT_EQ(*parse_recipe_mix("tempo+tempo@0-3"), *parse_recipe_mix("tempo"));
    EXPECT_EQ(mix_of(Recipe{}, {Recipe{}, recipe("tempo"), recipe("tempo")}),
              *parse_recipe_mix("tempo@1-2"));
}

TEST(RecipeMix, CanonicalTextComesBackAsTheSameMix) {
    for (const char* text : {"tempo@0-11", "tempo+gelu=original@3", "masks=bit,optimizer=sgd",
                             "tempo-published+original@2-4", "checkpoint@1+tempo,masks=bit@2-9",
                             "optimizer=adamw_loop+attention=recompute_dropout@0"}) {
        const auto mix = parse_recipe_mix(text);
        ASSERT_TRUE(mix) << text << ": " << mix.error().message;
        EXPECT_EQ(*parse_recipe_mix(to_text(*mix)), *mix) << to_text(*mix);
    }
    EXPECT_EQ(to_text(*parse_recipe_mix("tempo-dropout@0-11")),
              "original+attention=recompute_dropout@0-11");
}

TEST(RecipeMix, OptimizerAndKernelsAreTheStepsInEveryLayer) {
    const auto mix = parse_recipe_mix("tempo-published,optimizer=sgd+original@0-3");
    ASSERT_TRUE(mix);
    EXPECT_EQ(recipe_of_layer(*mix, 2), recipe("optimizer=sgd,kernels=published"));
}

TEST(RecipeMix, RefusesWhatNamesNoLayersInOneSentence) {
    const auto message = [](std::string_view text) {
        const auto mix = parse_recipe_mix(text);
        return mix ? std::string() : mix.error().message;
    };
    for (const char* text : {"tempo@", "tempo@a", "tempo@5-3", "tempo@-1", "tempo@0-",
                             "tempo@1-2-3", "tempo@99999999999999999999", "tempo@100000"}) {
        EXPECT_THAT(message(text), HasSubstr("names no layers")) << text;
    }
    EXPECT_THAT(message("tempo+gelu=in_place"), HasSubstr("does not say for which layers"));
    EXPECT_THAT(message("original+optimizer=sgd@3"), HasSubstr("the whole step's"));
    EXPECT_THAT(message("original+optimizer=adamw@3"), HasSubstr("the whole step's"));
    EXPECT_THAT(message("original+tempo-published@3"), HasSubstr("the whole step's"));
    EXPECT_THAT(message("tempq@3"), HasSubstr("tempo"));
    EXPECT_NE(message("@3"), "");
    EXPECT_NE(message("tempo+"), "");
    EXPECT_NE(message(""), "");
}

Workload mixed_workload(std::string_view text) {
    return with_recipe(Workload{.model = find_model("bert-base").value()}, text).value();
}

TEST(WorkloadOfAMix, ComesBackFromJson) {
    const Workload workload = mixed_workload("tempo+checkpoint@2-3");
    EXPECT_EQ(*workload_from_json(to_json(workload)), workload);
    EXPECT_EQ(workload_of_layer(workload, 3).recipe, recipe("checkpoint"));
    EXPECT_EQ(recipes_in(workload), (std::vector{recipe("tempo"), recipe("checkpoint")}));
    EXPECT_TRUE(comparable(workload, mixed_workload("original")));
}

TEST(WorkloadOfAMix, IsValidWhenEachOfItsLayersIs) {
    EXPECT_TRUE(validate(mixed_workload("tempo@0-11")));
    EXPECT_THAT(validate(mixed_workload("tempo@0-12")).error().message,
                HasSubstr("names layer 12, but bert-base has the layers 0 to 11"));
    EXPECT_THAT(validate(mixed_workload("checkpoint,dropout=stock@3")).error().message,
                HasSubstr("dropout=stock"));
    EXPECT_FALSE(validate_for_cpu(mixed_workload("attention=efficient@3")));
    EXPECT_FALSE(validate_for_cuda(mixed_workload("flash@3"), kAmpere));  // fp32
}

}  // namespace
}  // namespace models
