#include "profiler/view/programs/compare_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using testing::Contains;

ComparisonColumn captured(const std::string& recipe) {
    ComparisonColumn column;
    column.recipe = column.recipe_of_trace = recipe;
    column.peak_allocated_bytes = 1 << 20;
    column.steps = 1;
    return column;
}

PlanRow planned(const Gpu& gpu, const std::string& recipe, int64_t max_batch, double best) {
    PlanRow row;
    row.gpu = &gpu;
    row.workload.recipe_name = recipe;
    row.max_batch_size = max_batch;
    row.best_batch_size = max_batch;
    row.best_sequences_per_s = best;
    row.curve = {{.batch_size = 1, .sequences_per_s = best / 2},
                 {.batch_size = max_batch, .sequences_per_s = best}};
    return row;
}

TEST(ComparePlan, StandsBesideWhatWasMeasured) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    Comparison comparison;
    comparison.columns = {captured("original"), captured("tempo"), captured("checkpoint")};
    comparison.columns[1].max_batch = {.at_least = 10, .below = 11};
    Plan plan;
    plan.rows = {planned(gpu, "original", 8, 20), planned(gpu, "tempo", 12, 18)};
    plan.rows.push_back(planned(gpu, "checkpoint", 0, 0));
    plan.rows.back().curve.clear();
    plan.rows.back().best_batch_size.reset();
    plan.rows.back().status = PlanStatus::kDoesNotFit;
    plan.rows.back().reason = "Batch 1 needs 20.0 GiB.";
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_EQ(view.planned_on, "NVIDIA T4");
    EXPECT_EQ(view.planned_mark, "predicted, T4") << "the files are of no T4";
    comparison.columns[0].device = "NVIDIA T4 with torch-2.11";
    add_plan(view, comparison, plan);
    EXPECT_EQ(view.planned_mark, "predicted");
    ASSERT_TRUE(view.columns[1].planned);
    EXPECT_EQ(view.columns[1].planned->max_batch_size, 12);
    EXPECT_EQ(view.columns[1].planned_max_batch_change.text, "+50.0 %");
    EXPECT_EQ(view.columns[1].planned_best_change.tone, Tone::kBad);
    ASSERT_EQ(view.columns[0].planned->curve.size(), 2U);
    EXPECT_EQ(point_text(view.columns[0].planned->curve[1]), "batch 8: 20.0 sequences/s predicted");
    EXPECT_EQ(view.columns[2].planned->max_batch_size, 0);
    EXPECT_EQ(view.columns[2].planned->reason, "Batch 1 needs 20.0 GiB.");
    // The table has predictions only where nothing was measured.
    EXPECT_THAT(view.table.rows[0], Contains("8 predicted"));
    EXPECT_THAT(view.table.rows[0], Contains("20.0 at batch 8 predicted"));
    EXPECT_THAT(view.table.rows[1], Contains("10"));
    EXPECT_THAT(view.table.rows[1], testing::Not(Contains("12 predicted")));
    EXPECT_THAT(view.table.rows[2], Contains("none predicted"));
}

TEST(ComparePlan, APredictedFileSaysSoOnceAndNotInEachCell) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    Comparison comparison;
    comparison.columns = {captured("original")};
    comparison.columns[0].source = Source::kPredicted;
    Plan plan;
    plan.rows = {planned(gpu, "original", 8, 20)};
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_TRUE(view.columns[0].is_predicted);
    EXPECT_FALSE(view.columns[0].is_planned);
    EXPECT_THAT(view.table.rows[0], Contains("8"));
    EXPECT_THAT(view.table.rows[0], Contains("20.0 at batch 8"));
}

TEST(ComparePlan, IsNotComparedWithAMeasuredBaseline) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    Comparison comparison;
    comparison.columns = {captured("original"), captured("tempo")};
    comparison.columns[0].max_batch = {.at_least = 4, .below = 5};
    Plan plan;
    plan.rows = {planned(gpu, "original", 8, 20), planned(gpu, "tempo", 12, 18)};
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_TRUE(view.columns[1].planned_max_batch_change.empty()) << "4 was measured, not 8";
    EXPECT_EQ(view.columns[1].planned_best_change.text, "-10.0 %") << "no curve was measured";
}

TEST(ComparePlan, TheTableSaysWhatElseThanMemoryIsTheLimit) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    Comparison comparison;
    comparison.columns = {captured("original")};
    Plan plan;
    plan.rows = {planned(gpu, "original", 8, 20)};
    plan.rows[0].other_limit = not_limited_by_memory(8, "Larger ones were not tried");
    plan.rows[0].max_batch_end = MaxBatchEnd::kSearch;
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_THAT(view.table.rows[0], Contains("≥ 8 predicted"));

    plan.rows[0].max_batch_end = MaxBatchEnd::kElements;
    view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_THAT(view.table.rows[0], Contains("8 predicted, by tensor size"));
}

/// A plan of `recipe` for a batch of 8 that needs `peak_bytes`.
PlanRow planned_step(const Gpu& gpu, const SoftwareEnvironment& environment,
                     const std::string& recipe, int64_t peak_bytes) {
    PlanRow row = planned(gpu, recipe, 12, 30);
    row.environment = &environment;
    row.batch_size = 8;
    row.memory.emplace();
    row.memory->contents.peaks.peak_allocated_bytes = peak_bytes;
    row.memory->contents.peak_phase = PhaseKind::kBackward;
    row.memory->saved_bytes = peak_bytes / 2;
    row.memory->contents.by_category[static_cast<std::size_t>(Category::kActivation)] = peak_bytes;
    row.sequences_per_s = 20;
    return row;
}

TEST(ComparePlan, RecipesThatNoFileHasGetColumns) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    const SoftwareEnvironment environment{.id = "torch-2.11"};
    Comparison comparison;
    comparison.columns = {captured("original"), captured("tempo")};
    comparison.columns[1].peak_allocated_bytes = 0;  // only a sweep
    Plan plan;
    plan.rows = {planned_step(gpu, environment, "tempo", 3 << 18),
                 planned_step(gpu, environment, "checkpoint", 1 << 19),
                 planned_step(gpu, environment, "best", 1 << 18)};
    plan.rows.back().status = PlanStatus::kNotSupported;
    add_planned_columns(comparison, plan);
    ASSERT_EQ(comparison.columns.size(), 3U);  // the GPU cannot run `best`
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_FALSE(view.columns[0].memory_is_predicted);
    EXPECT_TRUE(view.columns[1].memory_is_predicted);
    EXPECT_FALSE(view.columns[1].is_planned);
    EXPECT_EQ(view.columns[1].peak_bytes, 3 << 18);
    EXPECT_TRUE(view.columns[1].peak_change.empty());  // a plan beside a measurement
    EXPECT_EQ(view.columns[2].recipe, "checkpoint");
    EXPECT_TRUE(view.columns[2].is_planned);
    ASSERT_EQ(view.columns[2].stack.size(), 1U);
    EXPECT_EQ(view.columns[2].saved_text, "256 KiB");
    EXPECT_EQ(view.columns[2].peak_phase_text, "backward");
    EXPECT_EQ(max_batch_text(*view.columns[2].planned), "12");
    EXPECT_THAT(view.table.rows[2], Contains("512 KiB"));
    EXPECT_THAT(view.table.rows[2], Contains("12"));
    EXPECT_THAT(view.source, testing::HasSubstr("NVIDIA T4 with torch-2.11"));
}

TEST(ComparePlan, BesideAPredictionPlansAreCompared) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    const SoftwareEnvironment environment{.id = "torch-2.11"};
    Comparison comparison;
    comparison.columns = {captured("original")};
    comparison.columns[0].source = Source::kPredicted;
    comparison.columns[0].device = "NVIDIA T4 with torch-2.11";
    comparison.columns[0].batch_size = 8;
    comparison.columns[0].sequences_per_s = 25;
    comparison.columns[0].saved_bytes = 1 << 20;
    Plan plan;
    plan.rows = {planned_step(gpu, environment, "tempo", 1 << 19)};
    add_planned_columns(comparison, plan);
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[1].peak_change.text, "-50.0 %");
    EXPECT_EQ(view.columns[1].saved_change.text, "-75.0 %");
    EXPECT_EQ(view.columns[1].throughput_change.text, "-20.0 %");
}

TEST(ComparePlan, BesideAPredictionOfAnotherGpuPlansAreNotCompared) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    const SoftwareEnvironment environment{.id = "torch-2.11"};
    Comparison comparison;
    comparison.columns = {captured("original")};
    comparison.columns[0].source = Source::kPredicted;
    comparison.columns[0].device = "NVIDIA A100-SXM4-80GB with torch-2.11";
    comparison.columns[0].batch_size = 8;
    Plan plan;
    plan.rows = {planned_step(gpu, environment, "tempo", 1 << 19)};
    add_planned_columns(comparison, plan);
    const CompareView view = build_compare_view(comparison);
    EXPECT_TRUE(view.columns[1].peak_change.empty());
    EXPECT_TRUE(view.columns[1].throughput_change.empty());
}

TEST(ComparePlan, ABatchThatDoesNotFitIsAResult) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    const SoftwareEnvironment environment{.id = "torch-2.11"};
    Comparison comparison;
    comparison.columns = {captured("tempo")};
    Plan plan;
    plan.rows = {planned_step(gpu, environment, "original", 1 << 20)};
    plan.rows[0].status = PlanStatus::kDoesNotFit;
    plan.rows[0].reason = "Batch 8 needs 20.0 GiB.";
    plan.rows[0].memory.reset();
    add_planned_columns(comparison, plan);
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[1].peak_text, "does not fit");
    EXPECT_EQ(view.columns[1].saved_text, "–");
    EXPECT_TRUE(view.columns[1].out_of_memory);
}

TEST(ComparePlan, ColumnsOfAnotherStepStayWithout) {
    const Gpu gpu{.id = "t4", .name = "NVIDIA T4"};
    Comparison comparison;
    comparison.columns = {captured("original"), captured("original")};
    comparison.columns[1].baseline = 1;
    Plan plan;
    plan.rows = {planned(gpu, "original", 8, 20)};
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_TRUE(view.columns[0].planned);
    EXPECT_FALSE(view.columns[1].planned);
    add_planned_columns(comparison, plan);
    EXPECT_EQ(comparison.columns.size(), 2U);
    add_plan(view, comparison, Plan());  // no rows: nothing happens
}

}  // namespace
