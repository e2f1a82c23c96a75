#include "profiler/view/plan/recipe_frontier_view.h"

#include "models/config/layer_recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

struct Cost {
    double gib = 8;  // at every batch
    double step_ms = 100;
    int64_t max_batch = 32;
};

const Gpu kGpu{.id = "a100", .name = "NVIDIA A100"};

PlanRow row_of(const std::string& recipe) {
    PlanRow row;
    row.gpu = kGpu;
    row.workload = models::with_recipe(std::move(row.workload), recipe).value();
    return row;
}

/// A recipe whose step takes the same memory and time at every batch up to the largest.
PlanRow planned(const std::string& recipe, Cost cost) {
    PlanRow row = row_of(recipe);
    row.memory = PlanMemory{.context_bytes = kGiB};
    row.max_batch_size = cost.max_batch;
    const auto step_ns = static_cast<int64_t>(cost.step_ms * 1e6);
    for (const int64_t batch : {int64_t{1}, cost.max_batch}) {
        const auto bytes = static_cast<int64_t>(cost.gib * static_cast<double>(kGiB));
        row.memory_curve.push_back({.batch_size = batch, .needed_bytes = bytes});
        const double rate = static_cast<double>(batch) * 1e9 / static_cast<double>(step_ns);
        row.curve.push_back({batch, step_ns, rate});
        row.best_sequences_per_s = rate;
        row.best_batch_size = batch;
    }
    return row;
}

/// A recipe that runs at no batch.
PlanRow refused(const std::string& recipe, const std::string& why) {
    PlanRow row = row_of(recipe);
    row.reason = why;
    return row;
}

std::vector<Gpu> some_gpus() {
    std::vector<Gpu> gpus;
    for (const auto& [id, gib] :
         {std::pair{"t4", 9.0}, {"v100", 9.2}, {"a100", 12.0}, {"b", 90.0}}) {
        Gpu gpu{.id = id, .name = std::string("NVIDIA ") + id + " SXM"};
        gpu.usable_memory_bytes.value = gib * static_cast<double>(kGiB);
        gpus.push_back(gpu);
    }
    return gpus;
}

FrontierRequest request_of(std::vector<PlanRow> rows) {
    return {.planned = std::make_shared<const Plan>(Plan{std::move(rows)}),
            .batch_size = 8,
            .gpu = "a100"};
}

RecipeFrontierView view_of(std::vector<PlanRow> rows) {
    return build_recipe_frontier_view(request_of(std::move(rows)));
}

std::vector<std::string> names_of(const RecipeFrontierView& view,
                                  const std::vector<std::size_t>& dots) {
    std::vector<std::string> names;
    for (const std::size_t i : dots) names.push_back(view.dots[i].name);
    return names;
}

TEST(RecipeFrontier, ADotThatAnotherBeatsInBothIsNotOnTheFrontier) {
    const RecipeFrontierView view =
        view_of({planned("original", {.gib = 10, .step_ms = 100}),
                 planned("gelu=in_place", {.gib = 8, .step_ms = 110}),
                 planned("gelu=recompute", {.gib = 9, .step_ms = 120})});
    EXPECT_THAT(names_of(view, view.frontier), ElementsAre("tempo-gelu", "original"));
    ASSERT_TRUE(view.dots[2].beaten_by);
    EXPECT_EQ(*view.dots[2].beaten_by, 1U);
    EXPECT_EQ(view.dots[0].figures.rate_text, "80.0");
    EXPECT_EQ(view.dots[0].figures.memory_text, "10.0 GiB");
    EXPECT_EQ(view.dots[1].title, "tempo-gelu");
    EXPECT_EQ(view.dots[1].detail, "in-place GELU");
    EXPECT_EQ(view.dots[0].detail, "the baseline");
}

TEST(RecipeFrontier, OfEqualDotsTheOneWithTheFewestSwitchesIsOnIt) {
    const RecipeFrontierView view =
        view_of({planned("gelu=in_place,layer_norm=from_output", {}), planned("gelu=in_place", {}),
                 planned("masks=bit", {})});
    EXPECT_THAT(names_of(view, view.frontier), ElementsAre("tempo-gelu"));
    EXPECT_EQ(view.dots[0].beaten_by, 1U);
    EXPECT_EQ(best_within(view, 1e18), 1U);
}

TEST(RecipeFrontier, TheLineStepsFromDotToDotAndOnToTheEdge) {
    const RecipeFrontierView view = view_of({planned("original", {.gib = 10, .step_ms = 100}),
                                             planned("masks=bit", {.gib = 8, .step_ms = 200})});
    const double low = 8.0 * static_cast<double>(kGiB), high = 10.0 * static_cast<double>(kGiB);
    EXPECT_THAT(view.line_x, ElementsAre(low, low, high, high, view.last_x));
    EXPECT_THAT(view.line_y, ElementsAre(0, 40, 40, 80, 80));
    EXPECT_LT(view.first_x, low);
    EXPECT_GT(view.last_x, high);
}

TEST(RecipeFrontier, ByBatchMoreIsBetterInBoth) {
    FrontierRequest request =
        request_of({planned("original", {.step_ms = 100, .max_batch = 10}),
                    planned("masks=bit", {.step_ms = 500, .max_batch = 20}),
                    planned("gelu=in_place", {.step_ms = 400, .max_batch = 9})});
    request.axis = FrontierAxis::kMaxBatch;
    const RecipeFrontierView view = build_recipe_frontier_view(request);
    EXPECT_THAT(names_of(view, view.frontier), ElementsAre("original", "masks=bit"));
    EXPECT_EQ(view.dots[0].x, 10);
    EXPECT_EQ(view.dots[0].y, 100);
    EXPECT_EQ(best_within(view, 10), 0U);
    EXPECT_EQ(best_within(view, 11), 1U);
    EXPECT_EQ(best_within(view, 21), std::nullopt);
    EXPECT_TRUE(view.ceilings.empty());
}

TEST(RecipeFrontier, ItsTableHasTheLargestBatchWhereItIsAnAxis) {
    FrontierRequest request = request_of({planned("original", {.gib = 10, .max_batch = 12})});
    const DataTable by_memory = frontier_data(build_recipe_frontier_view(request));
    EXPECT_EQ(by_memory.columns[4], "throughput_sequences_per_s");
    EXPECT_EQ(by_memory.rows[0][5], Cell(10 * kGiB)) << "needed_bytes";
    request.axis = FrontierAxis::kMaxBatch;
    const DataTable by_batch = frontier_data(build_recipe_frontier_view(request));
    EXPECT_EQ(by_batch.columns[4], "max_batch_size");
    EXPECT_EQ(by_batch.rows[0][4], Cell(12));
    EXPECT_EQ(by_batch.rows[0].size(), by_batch.columns.size());
}

TEST(RecipeFrontier, TheBestWithinALimitIsTheFastestThatNeedsNoMore) {
    const RecipeFrontierView view = view_of({planned("original", {.gib = 10, .step_ms = 100}),
                                             planned("masks=bit", {.gib = 8, .step_ms = 200})});
    const auto gib = static_cast<double>(kGiB);
    EXPECT_EQ(best_within(view, 12 * gib), 0U);
    EXPECT_EQ(best_within(view, 10 * gib), 0U);
    EXPECT_EQ(best_within(view, 9.9 * gib), 1U);
    EXPECT_EQ(best_within(view, 7 * gib), std::nullopt);
}

TEST(RecipeFrontier, ANearTieIsAtMostOnePercentSlowerAndSmaller) {
    const RecipeFrontierView view =
        view_of({planned("original", {.gib = 10, .step_ms = 1000}),
                 planned("masks=bit", {.gib = 8, .step_ms = 1009}),
                 planned("gelu=in_place", {.gib = 7, .step_ms = 1020})});
    EXPECT_EQ(smaller_near_tie(view, 0), 1U);
    EXPECT_EQ(smaller_near_tie(view, 1), std::nullopt) << "the next one is 1.08 % slower";
    EXPECT_EQ(smaller_near_tie(view, 2), std::nullopt) << "none is smaller";
    const RecipeFrontierView close =
        view_of({planned("original", {.gib = 1000, .step_ms = 100}),
                 planned("masks=bit", {.gib = 991, .step_ms = 100.5})});
    EXPECT_EQ(smaller_near_tie(close, 0), std::nullopt) << "it saves less than 1 %";
    RecipeFrontierView by_batch = view;
    by_batch.axis = FrontierAxis::kMaxBatch;
    EXPECT_EQ(smaller_near_tie(by_batch, 0), std::nullopt) << "x is no memory";
}

TEST(RecipeFrontier, ANearTieIsNoneThatItsGapsRefuse) {
    RecipeFrontierView view = view_of({planned("original", {.gib = 10, .step_ms = 1000}),
                                       planned("masks=bit", {.gib = 7, .step_ms = 1000}),
                                       planned("gelu=in_place", {.gib = 8, .step_ms = 1001})});
    view.usable_bytes = 9 * kGiB;
    for (RecipeDot& dot : view.dots) dot.figures.fits = dot.figures.needed_bytes == 8 * kGiB;
    EXPECT_EQ(smaller_near_tie(view, 0), 2U) << "the smallest would fit but for its gaps";
}

TEST(RecipeFrontier, TheBestWithinTheGpuIsNoneThatItsGapsRefuse) {
    const std::vector<Gpu> gpus = some_gpus();
    FrontierRequest request =
        request_of({planned("original", {.gib = 11.9, .step_ms = 100, .max_batch = 7}),
                    planned("masks=bit", {.gib = 8, .step_ms = 200})});
    request.gpus = &gpus;
    const RecipeFrontierView view = build_recipe_frontier_view(request);
    EXPECT_FALSE(view.dots[0].figures.fits);
    EXPECT_EQ(best_within(view, static_cast<double>(view.usable_bytes)), 1U);
}

TEST(RecipeFrontier, RecipesThatDoNotRunAreNamedAndNotDrawn) {
    const RecipeFrontierView view =
        view_of({planned("original", {}), refused("attention=flash", "It needs fp16."),
                 refused("attention=efficient", "")});
    EXPECT_EQ(view.dots.size(), 1U);
    ASSERT_EQ(view.refused.size(), 2U);
    EXPECT_EQ(view.refused[0].name, "flash");
    EXPECT_EQ(view.refused[0].why, "It needs fp16.");
    EXPECT_FALSE(view.refused[1].why.empty());
}

TEST(RecipeFrontier, NothingPlannedIsAnEmptyPicture) {
    EXPECT_TRUE(build_recipe_frontier_view({}).dots.empty());
    const RecipeFrontierView view = view_of({});
    EXPECT_TRUE(view.frontier.empty());
    EXPECT_TRUE(view.line_x.empty());
    EXPECT_EQ(best_within(view, 1e18), std::nullopt);
    EXPECT_TRUE(recipe_path(view, 0, 1).steps.empty());
    EXPECT_LT(view.first_x, view.last_x);
}

TEST(RecipeFrontier, OneDotHasRoomAroundIt) {
    const RecipeFrontierView view = view_of({planned("original", {})});
    EXPECT_LT(view.first_x, view.dots[0].x);
    EXPECT_GT(view.last_x, view.dots[0].x);
    EXPECT_LT(view.first_y, view.dots[0].y);
    EXPECT_GT(view.last_y, view.dots[0].y);
}

TEST(RecipeFrontier, GpusOfNearlyTheSameMemoryShareACeiling) {
    const std::vector<Gpu> gpus = some_gpus();
    FrontierRequest request = request_of(
        {planned("original", {.gib = 10}), planned("masks=bit", {.gib = 8, .step_ms = 200})});
    request.gpus = &gpus;
    const RecipeFrontierView view = build_recipe_frontier_view(request);
    ASSERT_EQ(view.ceilings.size(), 2U);  // that of 90 GiB is far away
    EXPECT_EQ(view.ceilings[0].label, "t4 SXM, v100 SXM");
    EXPECT_FALSE(view.ceilings[0].is_chosen);
    EXPECT_EQ(view.ceilings[1].label, "a100 SXM");
    EXPECT_TRUE(view.ceilings[1].is_chosen);
    EXPECT_GT(view.last_x, view.ceilings[1].bytes);  // near enough to be shown
    EXPECT_EQ(view.gpu, "a100 SXM");
}

TEST(RecipeFrontier, MarksStandAtTheRecipesOfAAndB) {
    FrontierRequest request = request_of({planned("original", {}), planned("masks=bit", {})});
    request.pair = {{"A", "masks=bit"}, {"B", "gelu=in_place"}};  // B is not planned yet
    const RecipeFrontierView view = build_recipe_frontier_view(request);
    ASSERT_EQ(view.marks.size(), 1U);
    EXPECT_EQ(view.marks[0].letter, "A");
    EXPECT_EQ(view.marks[0].dot, 1U);
}

TEST(RecipeFrontier, AMeasuredTraceStandsBesideItsPrediction) {
    FrontierRequest request = request_of({planned("original", {.gib = 10, .step_ms = 100})});
    request.measured = {{"original", "original", 10 * kGiB, 80'000'000},
                        {"on the CPU", "original", 8 * kGiB, 0},
                        {"another", "masks=bit", 8 * kGiB, 0}};
    const RecipeFrontierView view = build_recipe_frontier_view(request);
    ASSERT_EQ(view.measured.size(), 2U);
    EXPECT_EQ(view.measured[0].memory_text, "11.0 GiB, 10.0 % more than predicted");
    EXPECT_EQ(view.measured[0].rate_text, "100, 25.0 % more than predicted");
    EXPECT_EQ(view.measured[0].y, 100);
    EXPECT_TRUE(view.measured[1].is_memory_only);
    EXPECT_EQ(view.measured[1].y, view.dots[0].y);
    EXPECT_TRUE(view.measured[1].rate_text.empty());
}

TEST(RecipePath, TakesFirstWhatIsFreeAndThenWhatSavesMostPerMillisecond) {
    const RecipeFrontierView view = view_of(
        {planned("original", {.gib = 10, .step_ms = 100}),
         planned("gelu=recompute", {.gib = 8, .step_ms = 110}),
         planned("layer_norm=from_output", {.gib = 9, .step_ms = 101}),
         planned("masks=bit", {.gib = 9.5, .step_ms = 99}),
         planned("gelu=recompute,masks=bit", {.gib = 7.5, .step_ms = 109}),
         planned("layer_norm=from_output,masks=bit", {.gib = 8.5, .step_ms = 100}),
         planned("gelu=recompute,layer_norm=from_output,masks=bit", {.gib = 6.5, .step_ms = 110})});
    const RecipePath path = recipe_path(view, 0, 6);
    ASSERT_EQ(path.steps.size(), 3U);
    EXPECT_EQ(path.steps[0].change, "masks of one bit");
    EXPECT_EQ(path.steps[0].gain_text, "free");
    EXPECT_EQ(path.steps[0].memory_text, "-512 MiB");
    EXPECT_EQ(path.steps[0].time_text, "-1.00 ms");
    EXPECT_EQ(path.steps[1].change, "in-place LayerNorm");
    EXPECT_EQ(path.steps[1].gain_text, "1.00 GiB/ms");
    EXPECT_EQ(path.steps[2].change, "recomputed GELU");
    EXPECT_EQ(path.steps[2].recipe, "gelu=recompute,layer_norm=from_output,masks=bit");
    EXPECT_EQ(path.total.saved_bytes, 7 * kGiB / 2);
    EXPECT_EQ(path.total.time_text, "+10.0 ms");
}

TEST(RecipePath, LessThanAThousandthOfTheStepIsNoTime) {
    const RecipeFrontierView view =
        view_of({planned("original", {.gib = 10, .step_ms = 100}),
                 planned("masks=bit", {.gib = 9.5, .step_ms = 100.01})});
    const RecipePath path = recipe_path(view, 0, 1);
    ASSERT_EQ(path.steps.size(), 1U);
    EXPECT_EQ(path.steps[0].time_text, "≈ 0");
    EXPECT_EQ(path.steps[0].gain_text, "free");
}

TEST(RecipePath, BackToTheBaselineItGainsMostTimeForEachByteFirst) {
    const RecipeFrontierView view =
        view_of({planned("gelu=recompute,layer_norm=from_output", {.gib = 7, .step_ms = 111}),
                 planned("gelu=recompute", {.gib = 8, .step_ms = 110}),
                 planned("layer_norm=from_output", {.gib = 9, .step_ms = 101}),
                 planned("original", {.gib = 10, .step_ms = 100})});
    const RecipePath path = recipe_path(view, 0, 3);
    ASSERT_EQ(path.steps.size(), 2U);
    EXPECT_EQ(path.steps[0].change, "GELU as in the original");  // 10 ms for 2 GiB
    EXPECT_EQ(path.steps[0].time_text, "-10.0 ms");
    EXPECT_EQ(path.steps[1].change, "LayerNorm as in the original");
}

TEST(RecipePath, SwitchesThatAreNotPlannedAloneComeTogether) {
    const RecipeFrontierView view =
        view_of({planned("original", {.gib = 10, .step_ms = 100}),
                 planned("masks=bit", {.gib = 9, .step_ms = 100}),
                 planned("gelu=in_place,layer_norm=from_output,masks=bit", {.gib = 6})});
    const RecipePath path = recipe_path(view, 0, 2);
    ASSERT_EQ(path.steps.size(), 2U);
    EXPECT_EQ(path.steps[1].change, "in-place GELU + in-place LayerNorm");
    EXPECT_EQ(path.steps[1].saved_bytes, 3 * kGiB);
}

TEST(RecipePath, SaysWhyThereIsNone) {
    const RecipeFrontierView view = view_of(
        {planned("original", {}), planned("original+checkpoint=per_layer@0-3", {.gib = 6})});
    EXPECT_THAT(recipe_path(view, 0, 1).why_none, HasSubstr("Layers"));
    EXPECT_EQ(recipe_path(view, 0, 1).total.saved_bytes, 2 * kGiB);
    EXPECT_FALSE(recipe_path(view, 0, 0).why_none.empty());
    EXPECT_TRUE(recipe_path(view, 0, 7).steps.empty());
}

TEST(RecipeFrontier, ReplacesTheOptimizerOfARecipe) {
    EXPECT_EQ(models::with_optimizer_of("gelu=in_place", models::Optimizer::kSgd),
              "gelu=in_place,optimizer=sgd");
    EXPECT_EQ(models::with_optimizer_of("original,optimizer=sgd", models::Optimizer::kAdamW),
              "original");
    EXPECT_EQ(models::with_optimizer_of("no recipe", models::Optimizer::kSgd), "no recipe");
}

TEST(RecipeFrontier, ARecipeWithoutAPresetIsNamedInWords) {
    const RecipeFrontierView view =
        view_of({planned("gelu=in_place,masks=bit", {}), planned("tempo", {}),
                 planned("gelu=in_place,layer_norm=from_output,masks=bit", {})});
    EXPECT_EQ(view.dots[0].name, "gelu=in_place,masks=bit");
    EXPECT_EQ(view.dots[0].title, "In-place GELU, masks of one bit");
    EXPECT_EQ(view.dots[0].detail, "gelu=in_place,masks=bit");
    EXPECT_EQ(view.dots[1].title, "tempo");
    EXPECT_THAT(view.dots[1].detail, HasSubstr("in-place LayerNorm"));
}

TEST(RecipeFrontier, SaysWhatGivesAllRecipesOneLargestBatch) {
    const std::string why =
        "It is not memory that limits the batch to 32. At 33: the logits are too large";
    const auto reason = [](int64_t second_batch, const std::string& first_limit,
                           const std::string& second_limit) {
        std::vector<PlanRow> rows{planned("original", {.max_batch = 32}),
                                  planned("gelu=in_place", {.max_batch = second_batch})};
        rows[0].other_limit = first_limit;
        rows[1].other_limit = second_limit;
        FrontierRequest request = request_of(std::move(rows));
        request.axis = FrontierAxis::kMaxBatch;
        return build_recipe_frontier_view(request).same_batch_reason;
    };
    EXPECT_EQ(reason(32, why, why), why);
    EXPECT_EQ(reason(32, why, ""), "");
    EXPECT_EQ(reason(32, "", why), "");
    EXPECT_EQ(reason(30, why, why), "");
}

TEST(RecipeFrontier, NamesARecipeWithoutItsOptimizer) {
    const RecipeFrontierView view =
        view_of({planned(models::with_optimizer_of("masks=bit", models::Optimizer::kSgd), {}),
                 planned(models::with_optimizer_of("tempo", models::Optimizer::kSgd), {})});
    EXPECT_EQ(view.dots[0].name, "masks=bit");
    EXPECT_FALSE(view.dots[0].is_preset);
    EXPECT_EQ(view.dots[1].name, "tempo");
    EXPECT_TRUE(view.dots[1].is_preset);
}

}  // namespace
