#include "profiler/view/programs/compare_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using testing::Contains;

const Gpu kT4{.id = "t4", .name = "NVIDIA T4"};
const SoftwareEnvironment kTorch{.id = "torch-2.11"};

ComparisonColumn captured(const std::string& recipe) {
    ComparisonColumn column;
    column.recipe = column.recipe_of_trace = recipe;
    column.peak_allocated_bytes = 1 << 20;
    column.steps = 1;
    return column;
}

Comparison comparison_of(const std::vector<std::string>& recipes) {
    Comparison comparison;
    for (const std::string& recipe : recipes) comparison.columns.push_back(captured(recipe));
    return comparison;
}

PlanRow planned(const std::string& recipe, int64_t max_batch, double best) {
    PlanRow row;
    row.gpu = kT4;
    row.workload.recipe_name = recipe;
    row.max_batch_size = max_batch;
    row.best_batch_size = max_batch;
    row.best_sequences_per_s = best;
    row.curve = {{.batch_size = 1, .sequences_per_s = best / 2},
                 {.batch_size = max_batch, .sequences_per_s = best}};
    return row;
}

CompareView view_beside(const Comparison& comparison, const Plan& plan) {
    CompareView view = build_compare_view(comparison);
    add_plan(view, comparison, plan);
    return view;
}

TEST(ComparePlan, StandsBesideWhatWasMeasured) {
    Comparison comparison = comparison_of({"original", "tempo", "checkpoint"});
    comparison.columns[1].max_batch = {.at_least = 10, .below = 11};
    Plan plan;
    plan.rows = {planned("original", 8, 20), planned("tempo", 12, 18), planned("checkpoint", 0, 0)};
    plan.rows.back().curve.clear();
    plan.rows.back().best_batch_size.reset();
    plan.rows.back().status = PlanStatus::kDoesNotFit;
    plan.rows.back().reason = "Batch 1 needs 20.0 GiB.";
    CompareView view = view_beside(comparison, plan);
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
    Comparison comparison = comparison_of({"original"});
    comparison.columns[0].source = Source::kPredicted;
    const CompareView view = view_beside(comparison, {{planned("original", 8, 20)}});
    EXPECT_TRUE(view.columns[0].is_predicted);
    EXPECT_FALSE(view.columns[0].is_planned);
    EXPECT_THAT(view.table.rows[0], Contains("8"));
    EXPECT_THAT(view.table.rows[0], Contains("20.0 at batch 8"));
}

TEST(ComparePlan, IsNotComparedWithAMeasuredBaseline) {
    Comparison comparison = comparison_of({"original", "tempo"});
    comparison.columns[0].max_batch = {.at_least = 4, .below = 5};
    const CompareView view =
        view_beside(comparison, {{planned("original", 8, 20), planned("tempo", 12, 18)}});
    EXPECT_TRUE(view.columns[1].planned_max_batch_change.empty()) << "4 was measured, not 8";
    EXPECT_EQ(view.columns[1].planned_best_change.text, "-10.0 %") << "no curve was measured";
}

TEST(ComparePlan, TheTableSaysWhatElseThanMemoryIsTheLimit) {
    const Comparison comparison = comparison_of({"original"});
    Plan plan{{planned("original", 8, 20)}};
    plan.rows[0].other_limit = not_limited_by_memory(8, "Larger ones were not tried");
    plan.rows[0].max_batch_end = MaxBatchEnd::kSearch;
    EXPECT_THAT(view_beside(comparison, plan).table.rows[0], Contains("≥ 8 predicted"));
    plan.rows[0].max_batch_end = MaxBatchEnd::kElements;
    EXPECT_THAT(view_beside(comparison, plan).table.rows[0],
                Contains("8 predicted, by tensor size"));
}

/// A plan of `recipe` for a batch of 8 that needs `peak_bytes`.
PlanRow planned_step(const std::string& recipe, int64_t peak_bytes) {
    PlanRow row = planned(recipe, 12, 30);
    row.environment = kTorch;
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
    Comparison comparison = comparison_of({"original", "tempo"});
    comparison.columns[1].peak_allocated_bytes = 0;  // only a sweep
    Plan plan{{planned_step("tempo", 3 << 18), planned_step("checkpoint", 1 << 19),
               planned_step("best", 1 << 18)}};
    plan.rows.back().status = PlanStatus::kNotSupported;
    add_planned_columns(comparison, plan);
    ASSERT_EQ(comparison.columns.size(), 3U);  // the GPU cannot run `best`
    const CompareView view = view_beside(comparison, plan);
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

TEST(ComparePlan, BesideAPredictionPlansAreComparedIfItIsOfTheSameGpu) {
    const auto planned_beside = [](const std::string& device) {
        Comparison comparison = comparison_of({"original"});
        comparison.columns[0].source = Source::kPredicted;
        comparison.columns[0].device = device;
        comparison.columns[0].batch_size = 8;
        comparison.columns[0].sequences_per_s = 25;
        comparison.columns[0].saved_bytes = 1 << 20;
        add_planned_columns(comparison, {{planned_step("tempo", 1 << 19)}});
        return build_compare_view(comparison).columns[1];
    };
    const CompareColumn same = planned_beside("NVIDIA T4 with torch-2.11");
    EXPECT_EQ(same.peak_change.text, "-50.0 %");
    EXPECT_EQ(same.saved_change.text, "-75.0 %");
    EXPECT_EQ(same.throughput_change.text, "-20.0 %");
    const CompareColumn other = planned_beside("NVIDIA A100-SXM4-80GB with torch-2.11");
    EXPECT_TRUE(other.peak_change.empty());
    EXPECT_TRUE(other.throughput_change.empty());
}

TEST(ComparePlan, ABatchThatDoesNotFitIsAResult) {
    Comparison comparison = comparison_of({"tempo"});
    Plan plan{{planned_step("original", 1 << 20)}};
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
    Comparison comparison = comparison_of({"original", "original"});
    comparison.columns[1].baseline = 1;
    const Plan plan{{planned("original", 8, 20)}};
    CompareView view = view_beside(comparison, plan);
    EXPECT_TRUE(view.columns[0].planned);
    EXPECT_FALSE(view.columns[1].planned);
    add_planned_columns(comparison, plan);
    EXPECT_EQ(comparison.columns.size(), 2U);
    add_plan(view, comparison, Plan());  // no rows: nothing happens
}

}  // namespace
