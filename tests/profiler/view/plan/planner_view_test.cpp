#include "profiler/view/plan/planner_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

Gpu gpu_of(int64_t usable_bytes) {
    Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    gpu.usable_memory_bytes.value = static_cast<double>(usable_bytes);
    return gpu;
}

const Gpu kGpu = gpu_of(16 * kGiB);

/// 2 GiB and `bytes_per_sequence`, of which 1 GiB are parameters.
PlanRow planned(const std::string& recipe, int64_t max_batch, int64_t bytes_per_sequence = kGiB) {
    PlanRow row;
    row.gpu = kGpu;
    row.workload.recipe_name = recipe;
    row.max_batch_size = max_batch;
    for (const int64_t batch : {int64_t{1}, max_batch}) {
        MemoryPoint point{.batch_size = batch, .needed_bytes = 2 * kGiB};
        point.needed_bytes += batch * bytes_per_sequence;
        point.by_category[static_cast<std::size_t>(Category::kParameter)] = kGiB;
        point.by_category[static_cast<std::size_t>(Category::kActivation)] =
            batch * bytes_per_sequence;
        row.memory_curve.push_back(point);
        // 10 ms and 1 ms a sequence.
        const int64_t step_ns = 10'000'000 + batch * 1'000'000;
        row.curve.push_back(
            {batch, step_ns, static_cast<double>(batch) * 1e9 / static_cast<double>(step_ns)});
    }
    return row;
}

TEST(PlannerView, ReadsEveryBatchBetweenThoseOfThePlan) {
    const PlannerView view = build_planner_view({{planned("original", 14)}});
    EXPECT_EQ(view.gpu, "NVIDIA T4");
    const PlannerReading reading = read_planner(view, 0, 10);
    EXPECT_TRUE(reading.figures.fits);
    EXPECT_EQ(reading.figures.needed_bytes, 12 * kGiB);
    EXPECT_EQ(reading.gauge_text, "12.0 of 16.0 GiB");
    EXPECT_EQ(reading.figures.step_text, "20.0 ms");
    EXPECT_EQ(reading.figures.rate_text, "500");
    EXPECT_TRUE(reading.figures.why.empty());
}

TEST(PlannerView, PartsAddUpToTheMemory) {
    const PlannerReading reading =
        read_planner(build_planner_view({{planned("original", 14)}}), 0, 10);
    ASSERT_EQ(reading.parts.size(), 3U);
    EXPECT_FALSE(reading.parts[0].category);
    EXPECT_EQ(reading.parts[0].bytes, kGiB);
    EXPECT_EQ(reading.parts[1].category, Category::kParameter);
    EXPECT_EQ(reading.parts[2].category, Category::kActivation);
    EXPECT_EQ(reading.parts[2].bytes, 10 * kGiB);
}

TEST(PlannerView, SaysBeyondTheLimitWhatFits) {
    const PlannerView view =
        build_planner_view({{planned("original", 14), planned("tempo", 28, kGiB / 2)}});
    const PlannerReading reading = read_planner(view, 0, 20);
    EXPECT_FALSE(reading.figures.fits);
    EXPECT_EQ(reading.figures.needed_bytes, 22 * kGiB);  // the line goes on
    EXPECT_EQ(reading.figures.why, "Batch 20 needs 22.0 GiB, 6.00 GiB more than NVIDIA T4 has.");
    ASSERT_EQ(reading.fixes.size(), 2U);
    EXPECT_EQ(reading.fixes[0].text, "Batch 14: 583 sequences/s");
    EXPECT_EQ(reading.fixes[0].batch_size, 14);
    EXPECT_EQ(reading.fixes[1].text, "tempo: 667 sequences/s");
    EXPECT_EQ(reading.fixes[1].recipe, 1U);
    EXPECT_TRUE(reading.figures.rate_text.empty());
    EXPECT_TRUE(read_planner(view, 1, 20).figures.fits);
    EXPECT_TRUE(read_planner(view, 1, 20).fixes.empty());
}

TEST(PlannerView, CountsTheGapsThatDecideWhetherABatchFits) {
    PlanRow row = planned("original", 14);
    for (MemoryPoint& point : row.memory_curve) {
        point.needed_bytes += kGiB / 2;
        point.gap_bytes = kGiB / 2;
    }
    const PlannerReading reading = read_planner(build_planner_view({{row}}), 0, 10);
    EXPECT_EQ(reading.figures.needed_bytes, 12 * kGiB + kGiB / 2);
    ASSERT_EQ(reading.parts.size(), 4U);
    EXPECT_EQ(reading.parts[0].bytes, kGiB) << "the context holds no gaps";
    EXPECT_EQ(reading.parts[3].label, "Gaps between blocks");
    EXPECT_EQ(reading.parts[3].bytes, kGiB / 2);
}

TEST(PlannerView, SaysWhatElseThanMemoryLimitsTheBatch) {
    PlanRow row = planned("original", 14);
    const Gpu gpu = gpu_of(80 * kGiB);
    row.gpu = gpu;
    row.other_limit = not_limited_by_memory(14, "At 15: the logits are too large");
    const PlannerView view = build_planner_view({{row}});
    EXPECT_TRUE(read_planner(view, 0, 14).figures.why.empty());
    EXPECT_EQ(read_planner(view, 0, 20).figures.why,
              "It is not memory that limits the batch to 14. At 15: the logits are too large");
}

TEST(PlannerView, DrawsABandOnlyWhereThePlanStatesAnError) {
    PlanRow row = planned("original", 14);
    EXPECT_TRUE(build_planner_view({{row}}).recipes[0].speed_low.empty());
    EXPECT_EQ(build_planner_view({{row}}).band_text, "");
    row.time_accuracy = TimeAccuracy{.basis = RateBasis::kOthers, .error = 0.2};
    const PlannerView view = build_planner_view({{row}});
    const PlannerRecipe& recipe = view.recipes[0];
    ASSERT_EQ(recipe.speed_low.size(), recipe.speed_y.size());
    EXPECT_NEAR(recipe.speed_low[0], recipe.speed_y[0] * 0.8, 1e-9);
    EXPECT_NEAR(recipe.speed_high[0], recipe.speed_y[0] * 1.2, 1e-9);
    EXPECT_EQ(view.band_text, "±20 %: rates that others measured on this GPU");
    EXPECT_GT(view.axes.last_rate, recipe.speed_high.back());
}

TEST(PlannerPins, KeepFiguresAndCurves) {
    const PlannerView large = build_planner_view({{planned("tempo", 28, kGiB / 2)}});
    const PlannerPin pin = pin_of(large, 0, 10, "bert-large, T4");
    EXPECT_EQ(pin.recipe.name(), "tempo");
    EXPECT_EQ(pin.figures.memory_text, "7.00 GiB");
    EXPECT_EQ(pin.recipe.memory_x, large.recipes[0].memory_x);
    const PlannerView small = build_planner_view({{planned("original", 14)}});
    const PlannerAxes alone = axes_of(small, {});
    EXPECT_EQ(alone.last_batch, small.axes.last_batch);
    const PlannerAxes both = axes_of(small, std::span(&pin, 1));
    EXPECT_GT(both.last_batch, 28);
    EXPECT_GT(both.last_rate, alone.last_rate);
    EXPECT_EQ(pin_of(small, 7, 10, "").recipe.name(), "") << "there is no such recipe";
}

TEST(PlannerView, DrawsMemoryAcrossTheCeilingAndSpeedUpToTheLargestBatch) {
    const PlannerView view =
        build_planner_view({{planned("original", 14), planned("tempo", 28, kGiB / 2)}});
    EXPECT_GT(view.axes.last_batch, 28);
    EXPECT_GT(view.axes.last_bytes, static_cast<double>(view.usable_bytes));
    const PlannerRecipe& original = view.recipes[0];
    EXPECT_EQ(memory_at(original.row, 14).needed_bytes, 16 * kGiB);
    EXPECT_EQ(original.memory_x.back(), static_cast<double>(view.axes.last_batch));
    EXPECT_GT(original.memory_y.back(), static_cast<double>(view.usable_bytes));
    EXPECT_EQ(original.speed_x.back(), 14);
    EXPECT_LT(original.speed_y.back(), view.axes.last_rate);
}

TEST(PlannerView, KeepsTheReasonOfARecipeThatDoesNotFit) {
    const Gpu gpu = gpu_of(2 * kGiB);
    PlanRow row = planned("original", 1);
    row.gpu = gpu;
    row.max_batch_size = 0;
    row.status = PlanStatus::kDoesNotFit;
    row.reason = "Batch 1 needs 3 GiB.";
    row.memory_curve.pop_back();
    row.curve.clear();
    const PlannerView view = build_planner_view({{row}});
    EXPECT_EQ(max_batch_text(view.recipes[0].row), "none");
    const PlannerReading reading = read_planner(view, 0, 4);
    EXPECT_FALSE(reading.figures.fits);
    EXPECT_EQ(reading.figures.why, "Batch 1 needs 3 GiB.");
    EXPECT_FALSE(reading.parts.empty());
    EXPECT_GE(view.axes.last_bytes, static_cast<double>(3 * kGiB));
}

TEST(PlannerView, IsEmptyWithoutMemoryOrRecipes) {
    PlanRow refused;
    refused.gpu = kGpu;
    refused.refuse(models::Error{"bf16 does not run on it"});
    const PlannerView view = build_planner_view({{refused}});
    EXPECT_TRUE(view.recipes[0].memory_x.empty());
    EXPECT_THAT(read_planner(view, 0, 4).figures.why, HasSubstr("bf16"));
    EXPECT_TRUE(read_planner(view, 7, 4).parts.empty());
    EXPECT_TRUE(build_planner_view({}).recipes.empty());
}

}  // namespace
