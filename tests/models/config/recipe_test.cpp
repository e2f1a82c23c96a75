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
    }
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

}  // namespace
}  // namespace models
