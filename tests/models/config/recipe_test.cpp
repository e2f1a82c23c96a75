#include "models/config/recipe.h"

#include <gmock/gmock.h>

namespace models {
namespace {

using testing::HasSubstr;

TEST(ParseRecipe, FindsEveryPresetByItsName) {
    for (const RecipePreset& preset : recipe_presets()) {
        const auto recipe = parse_recipe(preset.name);
        ASSERT_TRUE(recipe) << preset.name;
        EXPECT_EQ(*recipe, preset.recipe) << preset.name;
        EXPECT_EQ(&recipe_presets()[preset_place(preset.name)], &preset);
    }
    EXPECT_FALSE(is_preset("gelu=in_place"));
}

TEST(ParseRecipe, ReadsSwitchesOnTopOfOriginal) {
    const auto recipe = parse_recipe("gelu=in_place,masks=bit");
    ASSERT_TRUE(recipe);
    EXPECT_EQ(*recipe, (Recipe{.gelu = Gelu::kInPlace, .masks = Masks::kBit}));
}

TEST(ParseRecipe, ReadsSwitchesOnTopOfAPreset) {
    const auto recipe = parse_recipe("tempo,masks=bit");
    ASSERT_TRUE(recipe);
    EXPECT_EQ(*recipe, *parse_recipe("tempo-packed"));
}

TEST(ParseRecipe, CanonicalTextComesBackAsTheSameRecipe) {
    for (const RecipePreset& preset : recipe_presets()) {
        EXPECT_EQ(*parse_recipe(to_text(preset.recipe)), preset.recipe) << preset.name;
    }
}

TEST(ParseRecipe, NamesTheNearestPresetsForAnUnknownOne) {
    const auto recipe = parse_recipe("tempo-pakced");
    ASSERT_FALSE(recipe);
    EXPECT_THAT(recipe.error().message, HasSubstr("tempo-packed"));
}

TEST(ParseRecipe, RefusesAnUnknownSwitchAndAnUnknownValue) {
    EXPECT_THAT(parse_recipe("glu=in_place").error().message, HasSubstr("'glu' is not a switch"));
    EXPECT_THAT(parse_recipe("gelu=inplace").error().message,
                HasSubstr("choose one of original, in_place"));
    EXPECT_FALSE(parse_recipe(""));
    EXPECT_FALSE(parse_recipe("gelu=in_place,tempo"));
    EXPECT_FALSE(parse_recipe("tempo,"));
}

TEST(ParseRecipe, RefusesASwitchGivenTwice) {
    for (const char* text : {"gelu=in_place,gelu=original", "gelu=in_place,gelu=in_place",
                             "tempo,gelu=original,gelu=in_place"}) {
        const auto recipe = parse_recipe(text);
        ASSERT_FALSE(recipe) << text;
        EXPECT_EQ(recipe.error().message,
                  "The recipe sets gelu twice: give each switch one value.");
    }
    EXPECT_THAT(parse_recipe("implementation=ours,kernels=published").error().message,
                HasSubstr("sets implementation twice"));
    EXPECT_TRUE(parse_recipe("tempo,gelu=original"));  // changes the preset
}

/// Older files and command lines have the former names.
TEST(ParseRecipe, ReadsFormerNamesAndWritesPresentOnes) {
    EXPECT_EQ(*parse_recipe("tempo,attention=materialized"),
              *parse_recipe("tempo,attention=eager"));
    EXPECT_EQ(to_text(*parse_recipe("kernels=published")), "implementation=published");
    EXPECT_EQ(differing_switches(Recipe{}, *parse_recipe("flash")), "attention=eager");
}

TEST(Recipe, KnowsWhereItRuns) {
    EXPECT_TRUE(runs_on_cpu(*parse_recipe("tempo")));
    EXPECT_TRUE(runs_on_cpu(*parse_recipe("flash")));
    EXPECT_FALSE(runs_on_cpu(*parse_recipe("attention=cudnn")));
    EXPECT_FALSE(runs_on_cpu(*parse_recipe("tempo-published")));
}

TEST(Recipe, KnowsWhetherItsKernelsHaveTwoImplementations) {
    EXPECT_FALSE(uses_implementation(*parse_recipe("flash,gelu=python,checkpoint=sqrt")));
    for (const char* text : {"gelu=in_place", "gelu=recompute", "layer_norm=from_output",
                             "attention=recompute_dropout", "masks=bit", "masks=philox"}) {
        EXPECT_TRUE(uses_implementation(*parse_recipe(text))) << text;
    }
}

TEST(ParseProgramRecipe, TakesTheLossInChunksBesideARecipe) {
    EXPECT_FALSE(parse_program_recipe("tempo")->chunks_loss);
    const auto both = parse_program_recipe("tempo,loss=chunked,masks=bit");
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_TRUE(both->chunks_loss);
    EXPECT_EQ(both->recipe, *parse_recipe("tempo,masks=bit"));
    const auto alone = parse_program_recipe("chunked-loss");
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_TRUE(alone->chunks_loss);
    EXPECT_EQ(alone->recipe, *parse_recipe("original-stock"));
    EXPECT_EQ(parse_program_recipe("tempo,loss=none").error().message,
              parse_recipe("tempo,loss=none").error().message);
}

TEST(JoinProgramRecipes, PutsBothIntoOneText) {
    EXPECT_EQ(join_program_recipes("tempo", "chunked-loss"), "tempo,loss=chunked");
    EXPECT_EQ(join_program_recipes("chunked-loss", "tempo"), "tempo,loss=chunked");
    EXPECT_EQ(join_program_recipes("chunked-loss", "chunked-loss"), "chunked-loss");
    EXPECT_EQ(join_program_recipes("tempo-packed", "checkpoint"),
              "tempo-packed,checkpoint=per_layer");
    const auto three = join_program_recipes("tempo,loss=chunked", "checkpoint");
    ASSERT_TRUE(three) << three.error().message;
    const auto parsed = parse_program_recipe(*three);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_TRUE(parsed->chunks_loss);
    EXPECT_EQ(parsed->recipe, *parse_recipe("tempo,checkpoint=per_layer"));
}

TEST(JoinProgramRecipes, RefusesTwoValuesOfOneSwitch) {
    const auto joined = join_program_recipes("flash", "tempo");
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().message, "'flash' and 'tempo' want different values of attention.");
    EXPECT_FALSE(join_program_recipes("tempo", "temp"));
}

}  // namespace
}  // namespace models
