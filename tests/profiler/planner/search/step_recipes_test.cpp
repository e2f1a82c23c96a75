#include "profiler/planner/search/step_recipes.h"

#include "models/config/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using models::Recipe;
using testing::UnorderedElementsAre;

models::Workload bert(models::Precision precision) {
    return {.model = *models::find_model("bert-large"), .precision = precision};
}

bool contains(const std::vector<Recipe>& recipes, const Recipe& recipe) {
    return std::find(recipes.begin(), recipes.end(), recipe) != recipes.end();
}

StepRecipes found(const models::Workload& workload, const char* gpu) {
    const PlannerData& data = built_in_planner_data();
    return recipes_of_a_step(workload, **find_gpu(data.gpus, gpu), data.calibration);
}

TEST(StepRecipes, HoldEachCombinationOnceAndThePresetsFirst) {
    const StepRecipes all = found(bert(models::Precision::kFp16), "a100-80gb");
    EXPECT_EQ(all.recipes.front(), Recipe{});
    EXPECT_GE(all.recipes.size(), 108U);
    EXPECT_GT(all.recipes.size(), all.num_presets);
    EXPECT_TRUE(all.refused.empty());
    for (const Recipe& recipe : all.recipes) {
        EXPECT_EQ(std::count(all.recipes.begin(), all.recipes.end(), recipe), 1);
    }
    for (const char* recipe :
         {"flash,masks=bit,gelu=recompute", "fusion=deepspeed,masks=bit", "best,masks=bit",
          "tempo-gelu,checkpoint=attention_core", "substation"}) {
        EXPECT_TRUE(contains(all.recipes, *models::parse_recipe(recipe))) << recipe;
    }
}

/// Values that do not go together are left out: attention_core needs eager attention, Substation's
/// fused layer the model's own projections.
TEST(StepRecipes, GetMoreOnTopOfTheBest) {
    const PlannerData& data = built_in_planner_data();
    const auto on_top = [&](const char* recipe) {
        std::vector<std::string> texts;
        for (const Recipe& more :
             recipes_on_top_of({*models::parse_recipe(recipe)}, bert(models::Precision::kFp16),
                               **find_gpu(data.gpus, "a100-80gb"))) {
            texts.push_back(models::to_text(more));
        }
        return texts;
    };
    EXPECT_THAT(
        on_top("flash"),
        UnorderedElementsAre("attention=flash,checkpoint=per_layer", "attention=flash,qkv=fused",
                             "attention=flash,checkpoint=per_layer,qkv=fused"));
    EXPECT_THAT(on_top("substation"),
                UnorderedElementsAre("checkpoint=per_layer,fusion=substation"));
}

TEST(StepRecipes, NameThePresetsThatTheGpuRefuses) {
    const StepRecipes all = found(bert(models::Precision::kFp16), "t4");
    ASSERT_FALSE(all.refused.empty());
    EXPECT_EQ(all.refused.front().name, "flash");
    EXPECT_FALSE(all.refused.front().why.empty());
    EXPECT_FALSE(contains(all.recipes, *models::parse_recipe("flash")));
}

TEST(StepRecipes, HaveTheOptimizerOfTheStep) {
    models::Workload workload = bert(models::Precision::kFp16);
    workload.recipe.optimizer = models::Optimizer::kSgd;
    workload.recipe.gelu = models::Gelu::kPython;  // does not matter
    for (const Recipe& recipe : found(workload, "a100-80gb").recipes) {
        EXPECT_EQ(recipe.optimizer, models::Optimizer::kSgd);
        EXPECT_NE(recipe.gelu, models::Gelu::kPython);
    }
}

TEST(RecipesBetween, HaveEachSwitchOfOneOrOfTheOther) {
    const Recipe from, to = *models::parse_recipe("tempo");
    const std::vector<Recipe> between = recipes_between(from, to);
    EXPECT_EQ(between.size(), 6U);  // 2^3 without the ends
    EXPECT_TRUE(contains(between, *models::parse_recipe("gelu=in_place")));
    EXPECT_FALSE(contains(between, from));
    EXPECT_FALSE(contains(between, to));
    EXPECT_TRUE(recipes_between(from, from).empty());
}

}  // namespace
