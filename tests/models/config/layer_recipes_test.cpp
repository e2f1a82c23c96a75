#include "models/config/layer_recipes.h"

#include "models/config/validity.h"
#include "models/config/workload.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace models {
namespace {

using testing::HasSubstr;

Recipe recipe(std::string_view text) { return parse_recipe(text).value(); }

TEST(LayerRecipes, OnePartIsTheRecipeOfAllLayers) {
    for (const RecipePreset& preset : recipe_presets()) {
        const auto layer_recipes = parse_layer_recipes(preset.name);
        ASSERT_TRUE(layer_recipes) << preset.name;
        EXPECT_EQ(*layer_recipes, (LayerRecipes{.recipe = preset.recipe, .layers = {}}));
        EXPECT_EQ(to_text(*layer_recipes), to_text(preset.recipe));
    }
}

TEST(LayerRecipes, ARangeOfLayersHasAPresetOrSwitches) {
    const auto layer_recipes =
        parse_layer_recipes("masks=bit+attention=recompute_dropout@0-11+tempo@20");
    ASSERT_TRUE(layer_recipes) << layer_recipes.error().message;
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 0), recipe("masks=bit,attention=recompute_dropout"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 11), recipe("masks=bit,attention=recompute_dropout"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 12), recipe("masks=bit"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 20), recipe("tempo"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 21), recipe("masks=bit"));
}

TEST(LayerRecipes, WithoutABaseTheOtherLayersAreOriginal) {
    const auto layer_recipes = parse_layer_recipes("tempo@0-11+checkpoint@12-23");
    ASSERT_TRUE(layer_recipes);
    EXPECT_EQ(layer_recipes->recipe, Recipe{});
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 12), recipe("checkpoint"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 24), Recipe{});
}

TEST(LayerRecipes, LaterPartsChangeEarlierOnes) {
    const auto layer_recipes = parse_layer_recipes("gelu=in_place@0-5+masks=bit@3-8");
    ASSERT_TRUE(layer_recipes);
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 2), recipe("gelu=in_place"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 4), recipe("gelu=in_place,masks=bit"));
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 8), recipe("masks=bit"));
}

TEST(LayerRecipes, IsCanonicalHoweverItWasWritten) {
    const auto split = parse_layer_recipes("original+gelu=in_place@3+gelu=in_place@4-7");
    ASSERT_TRUE(split);
    EXPECT_EQ(*split, *parse_layer_recipes("gelu=in_place@3-7"));
    EXPECT_EQ(*parse_layer_recipes("tempo+tempo@0-3"), *parse_layer_recipes("tempo"));
    EXPECT_EQ(layer_recipes_of(Recipe{}, {Recipe{}, recipe("tempo"), recipe("tempo")}),
              *parse_layer_recipes("tempo@1-2"));
}

TEST(LayerRecipes, CanonicalTextComesBackAsTheSameRecipes) {
    for (const char* text : {"tempo@0-11", "tempo+gelu=original@3", "masks=bit,optimizer=sgd",
                             "tempo-published+original@2-4", "checkpoint@1+tempo,masks=bit@2-9",
                             "optimizer=adamw_loop+attention=recompute_dropout@0"}) {
        const auto layer_recipes = parse_layer_recipes(text);
        ASSERT_TRUE(layer_recipes) << text << ": " << layer_recipes.error().message;
        EXPECT_EQ(*parse_layer_recipes(to_text(*layer_recipes)), *layer_recipes)
            << to_text(*layer_recipes);
    }
    EXPECT_EQ(to_text(*parse_layer_recipes("tempo-dropout@0-11")),
              "original+attention=recompute_dropout@0-11");
}

TEST(LayerRecipes, OptimizerAndImplementationHoldForTheWholeStep) {
    const auto layer_recipes = parse_layer_recipes("tempo-published,optimizer=sgd+original@0-3");
    ASSERT_TRUE(layer_recipes);
    EXPECT_EQ(recipe_of_layer(*layer_recipes, 2), recipe("optimizer=sgd,implementation=published"));
}

TEST(LayerRecipes, RefusesPartsThatDoNotNameTheirLayers) {
    const auto message = [](std::string_view text) {
        const auto layer_recipes = parse_layer_recipes(text);
        return layer_recipes ? std::string() : layer_recipes.error().message;
    };
    for (const char* text : {"tempo@", "tempo@a", "tempo@5-3", "tempo@-1", "tempo@0-",
                             "tempo@1-2-3", "tempo@99999999999999999999", "tempo@100000"}) {
        EXPECT_THAT(message(text), HasSubstr("does not name layers")) << text;
    }
    EXPECT_THAT(message("tempo+gelu=in_place"), HasSubstr("does not name its layers"));
    EXPECT_THAT(message("original+optimizer=sgd@3"), HasSubstr("the whole step"));
    EXPECT_THAT(message("original+optimizer=adamw@3"), HasSubstr("the whole step"));
    EXPECT_THAT(message("original+tempo-published@3"), HasSubstr("the whole step"));
    EXPECT_THAT(message("original+kernels=ours@3"), HasSubstr("the whole step"));
    EXPECT_THAT(message("original+masks=bit,masks=byte@3"), HasSubstr("sets masks twice"));
    EXPECT_THAT(message("tempq@3"), HasSubstr("tempo"));
    EXPECT_NE(message("@3"), "");
    EXPECT_NE(message("tempo+"), "");
    EXPECT_NE(message(""), "");
}

Workload per_layer_workload(std::string_view text) {
    return with_recipe(Workload{.model = find_model("bert-base").value()}, text).value();
}

TEST(WorkloadWithLayerRecipes, ComesBackFromJson) {
    const Workload workload = per_layer_workload("tempo+checkpoint@2-3");
    EXPECT_EQ(*workload_from_json(to_json(workload)), workload);
    EXPECT_EQ(workload_of_layer(workload, 3).recipe, recipe("checkpoint"));
    EXPECT_EQ(recipes_in(workload), (std::vector{recipe("tempo"), recipe("checkpoint")}));
    EXPECT_TRUE(comparable(workload, per_layer_workload("original")));
}

TEST(WorkloadWithLayerRecipes, IsValidWhenEachOfItsLayersIs) {
    EXPECT_TRUE(validate(per_layer_workload("tempo@0-11")));
    EXPECT_THAT(validate(per_layer_workload("tempo@0-12")).error().message,
                HasSubstr("names layer 12, but bert-base has the layers 0 to 11"));
    EXPECT_THAT(validate(per_layer_workload("masks=bit,dropout=stock@3")).error().message,
                HasSubstr("dropout=stock"));
    EXPECT_FALSE(validate_for_cpu(per_layer_workload("attention=efficient@3")));
    EXPECT_FALSE(validate_for_cuda(per_layer_workload("flash@3"), kAmpere));  // fp32
}

}  // namespace
}  // namespace models
