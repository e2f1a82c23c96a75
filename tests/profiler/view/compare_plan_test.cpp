#include "profiler/view/compare_plan.h"

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
    plan.rows.back().reason = "Batch 1 needs 20.0 GiB.";
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    EXPECT_EQ(view.planned_on, "NVIDIA T4");
    ASSERT_TRUE(view.columns[1].planned);
    EXPECT_EQ(view.columns[1].planned->max_batch_size, 12);
    EXPECT_EQ(view.columns[1].planned->max_batch_change.text, "+50.0 %");
    EXPECT_EQ(view.columns[1].planned->best_change.tone, Tone::kBad);
    ASSERT_EQ(view.columns[0].planned->curve.size(), 2U);
    EXPECT_EQ(view.columns[0].planned->curve[1].text, "B=8: 20.0 sequences/s predicted");
    EXPECT_FALSE(view.columns[2].planned->max_batch_size);
    EXPECT_EQ(view.columns[2].planned->why, "Batch 1 needs 20.0 GiB.");
    // The table has predictions only where nothing was measured.
    EXPECT_THAT(view.table.rows[0], Contains("8 predicted"));
    EXPECT_THAT(view.table.rows[0], Contains("20.0 at B=8 predicted"));
    EXPECT_THAT(view.table.rows[1], Contains("10"));
    EXPECT_THAT(view.table.rows[1], testing::Not(Contains("12 predicted")));
    EXPECT_THAT(view.table.rows[2], Contains("none predicted"));
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
    add_plan(view, comparison, Plan());  // no rows: nothing happens
}

}  // namespace
