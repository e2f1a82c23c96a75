#include "profiler/view/programs/compare_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

ComparisonColumn make_column(std::string recipe, int64_t activation_gib, int64_t step_ms) {
    ComparisonColumn column;
    column.recipe = std::move(recipe);
    column.source = Source::kMeasuredCpu;
    column.device = "test processor";
    column.batch_size = 8;
    column.peak_by_category[static_cast<std::size_t>(Category::kParameter)] = 2 * kGiB;
    column.peak_by_category[static_cast<std::size_t>(Category::kActivation)] =
        activation_gib * kGiB;
    column.peak_by_category[static_cast<std::size_t>(Category::kOptimizerState)] = 4 * kGiB;
    column.peak_allocated_bytes = (6 + activation_gib) * kGiB;
    column.saved_bytes = activation_gib * kGiB;
    column.step_time_ns = step_ms * 1'000'000;
    column.fastest_step_ns = (step_ms - 5) * 1'000'000;
    column.slowest_step_ns = (step_ms + 5) * 1'000'000;
    column.steps = 3;
    column.sequences_per_s = 8e3 / static_cast<double>(step_ms);
    return column;
}

ThroughputPoint make_point(int64_t batch, int64_t step_ms, int64_t spread_ms) {
    ThroughputPoint point;
    point.batch_size = batch;
    point.step_time_ns = step_ms * 1'000'000;
    point.step_time_min_ns = (step_ms - spread_ms) * 1'000'000;
    point.step_time_max_ns = (step_ms + spread_ms) * 1'000'000;
    point.sequences_per_s = static_cast<double>(batch) * 1e3 / static_cast<double>(step_ms);
    return point;
}

ThroughputPoint out_of_memory_at(int64_t batch) {
    ThroughputPoint point;
    point.batch_size = batch;
    point.out_of_memory = true;
    return point;
}

Comparison make_comparison() {
    Comparison comparison;
    comparison.columns = {make_column("original", 10, 400), make_column("tempo", 6, 440)};
    comparison.columns[0].curve = {make_point(4, 200, 10), make_point(8, 320, 20),
                                   out_of_memory_at(9)};
    comparison.columns[1].curve = {make_point(4, 210, 10), make_point(8, 300, 20),
                                   make_point(12, 500, 20), out_of_memory_at(13)};
    for (ComparisonColumn& column : comparison.columns) {
        column.memory_limit_bytes = 16 * kGiB;
        column.max_batch = bounds_of(column.curve);
    }
    comparison.workload = "bert-large, 3 layers";
    comparison.sentence = "tempo trains the same step in 25.0 % less memory than original.";
    comparison.notes = {"a note"};
    return comparison;
}

TEST(BuildCompareView, StacksCategoriesWithoutGapsFromZeroToThePeak) {
    const CompareView view = build_compare_view(make_comparison());
    for (const CompareColumn& column : view.columns) {
        int64_t top = 0;
        for (const StackSegment& segment : column.stack) {
            EXPECT_EQ(segment.start_bytes, top);
            EXPECT_GT(segment.size_bytes, 0);
            top += segment.size_bytes;
        }
        EXPECT_EQ(top, column.peak_bytes);
    }
    EXPECT_THAT(view.categories, ElementsAre(Category::kParameter, Category::kOptimizerState,
                                             Category::kActivation));
}

TEST(BuildCompareView, SaysWhatTheSecondRecipeSavesAndCosts) {
    const CompareView view = build_compare_view(make_comparison());
    const CompareColumn& tempo = view.columns[1];
    EXPECT_EQ(tempo.peak_change.text, "-25.0 %");
    EXPECT_EQ(tempo.peak_change.tone, Tone::kGood);
    EXPECT_EQ(tempo.saved_change.text, "-40.0 %");
    EXPECT_EQ(tempo.max_batch_change.text, "+50.0 %");
    EXPECT_EQ(tempo.max_batch_change.tone, Tone::kGood);
    EXPECT_EQ(tempo.throughput_change.text, "-9.1 %");
    EXPECT_EQ(tempo.throughput_change.tone, Tone::kBad);
    EXPECT_TRUE(view.columns[0].peak_change.empty());
    EXPECT_TRUE(view.columns[0].is_baseline);
}

TEST(BuildCompareView, CallsASpeedNeutralThatTheSpreadOfTheStepsExplains) {
    Comparison comparison = make_comparison();
    ComparisonColumn &original = comparison.columns[0], &tempo = comparison.columns[1];
    original.slowest_step_ns = tempo.fastest_step_ns;
    EXPECT_EQ(build_compare_view(comparison).columns[1].throughput_change.tone, Tone::kNeutral);
    EXPECT_EQ(build_compare_view(comparison).columns[1].throughput_change.text, "-9.1 %");
    original.slowest_step_ns = original.fastest_step_ns;
    EXPECT_EQ(build_compare_view(comparison).columns[1].throughput_change.tone, Tone::kBad);
    original.was_busy = true;
    EXPECT_EQ(build_compare_view(comparison).columns[1].throughput_change.tone, Tone::kNeutral);
    original.source = tempo.source = Source::kPredicted;  // no spread: the model's own difference
    EXPECT_EQ(build_compare_view(comparison).columns[1].throughput_change.tone, Tone::kBad);
}

TEST(BuildCompareView, ShowsTheRatioOfStepsThatWereMeasuredInTurn) {
    Comparison comparison = make_comparison();
    EXPECT_EQ(build_compare_view(comparison).columns[1].step_time_change.text, "+10.0 %");
    EXPECT_EQ(build_compare_view(comparison).columns[1].step_ratio_text, "");
    auto& ratio = comparison.columns[1].step_ratio;
    ratio = PairedRatio{.median = 1.08, .low = 1.06, .high = 1.101, .pairs = 6};
    CompareColumn tempo = build_compare_view(comparison).columns[1];
    EXPECT_TRUE(tempo.was_in_turn);
    EXPECT_TRUE(tempo.step_time_change.empty()) << "the pairs are compared, not the medians";
    EXPECT_EQ(tempo.step_ratio_tone, Tone::kBad);
    EXPECT_EQ(tempo.step_ratio_text, "1.080 (1.060 to 1.101), 6 pairs");
    ratio->low = 0.9;
    tempo = build_compare_view(comparison).columns[1];
    EXPECT_EQ(tempo.step_ratio_text, "1.08 (0.90 to 1.10), 6 pairs");
    EXPECT_EQ(tempo.step_ratio_tone, Tone::kNeutral) << "the spread includes no difference";
    EXPECT_EQ(tempo.throughput_change.tone, Tone::kNeutral);
}

TEST(BuildCompareView, GivesNoRatioAndNoChangeOfTooFewPairs) {
    Comparison comparison = make_comparison();
    comparison.columns[1].step_ratio =
        PairedRatio{.median = 1.08, .low = 1.06, .high = 1.101, .pairs = 5};
    const CompareColumn tempo = build_compare_view(comparison).columns[1];
    EXPECT_TRUE(tempo.was_in_turn);
    EXPECT_EQ(tempo.step_ratio_text, "");
    EXPECT_EQ(tempo.step_time_text, "440 ms");
    EXPECT_TRUE(tempo.step_time_change.empty());
    EXPECT_TRUE(tempo.throughput_change.empty());
}

TEST(BuildCompareView, ShowsNoTimesOfABusyMachine) {
    Comparison comparison = make_comparison();
    comparison.columns[1].was_busy = comparison.columns[1].sweep_was_busy = true;
    comparison.columns[1].step_ratio = PairedRatio{.median = 20, .low = 2, .high = 30, .pairs = 6};
    const CompareView view = build_compare_view(comparison);
    const CompareColumn& tempo = view.columns[1];
    EXPECT_EQ(tempo.step_time_text, "(busy)");
    EXPECT_EQ(tempo.throughput_text, "(busy)");
    EXPECT_EQ(tempo.best_text, "(busy)");
    EXPECT_EQ(tempo.step_ratio_text, "");
    EXPECT_TRUE(tempo.step_time_change.empty());
    EXPECT_TRUE(tempo.throughput_change.empty());
    EXPECT_TRUE(tempo.best_change.empty());
    EXPECT_FALSE(tempo.best_point);
    EXPECT_EQ(tempo.peak_change.text, "-25.0 %") << "memory is right";
    EXPECT_EQ(view.columns[0].step_time_text, "400 ms");
    std::swap(comparison.columns[0].was_busy, comparison.columns[1].was_busy);
    EXPECT_TRUE(build_compare_view(comparison).columns[1].throughput_change.empty())
        << "of a baseline that was busy";
}

TEST(BuildCompareView, GivesARecipeTheSameColorInEveryOrder) {
    Comparison comparison = make_comparison();
    comparison.columns.push_back(make_column("tempo-packed", 5, 430));
    const CompareView view = build_compare_view(comparison);
    std::swap(comparison.columns[1], comparison.columns[2]);
    const CompareView swapped = build_compare_view(comparison);
    EXPECT_EQ(swapped.columns[1].recipe, "tempo-packed");
    EXPECT_EQ(swapped.columns[1].color, view.columns[2].color);
    EXPECT_EQ(swapped.columns[2].color, view.columns[1].color);
    EXPECT_NE(view.columns[1].color, view.columns[2].color);
    comparison.columns[2].recipe = "tempo (before)";
    comparison.columns[2].recipe_of_trace = "tempo";
    EXPECT_EQ(build_compare_view(comparison).columns[2].color, view.columns[1].color);
}

TEST(BuildCompareView, CallsNoChangeNeutral) {
    Comparison comparison = make_comparison();
    comparison.columns[1] = comparison.columns[0];
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[1].peak_change.tone, Tone::kNeutral);
    EXPECT_FALSE(view.columns[1].peak_change.empty());
}

TEST(BuildCompareView, TurnsStepTimesIntoRatesWithTheirSpread) {
    const CompareView view = build_compare_view(make_comparison());
    const CompareColumn& original = view.columns[0];
    ASSERT_EQ(original.curve.size(), 2u);
    EXPECT_DOUBLE_EQ(original.curve[0].sequences_per_s, 20);
    EXPECT_DOUBLE_EQ(original.curve[0].sequences_per_s_min, 4e3 / 210);
    EXPECT_DOUBLE_EQ(original.curve[0].sequences_per_s_max, 4e3 / 190);
    EXPECT_EQ(original.out_of_memory_batch, 9);
    ASSERT_TRUE(original.best_point);
    EXPECT_EQ(*original.best_point, 1u);
    EXPECT_EQ(original.best_text, "25.0 at batch 8");
    EXPECT_EQ(view.columns[1].best_text, "26.7 at batch 8");
    EXPECT_EQ(view.max_batch_size, 12);
    EXPECT_EQ(view.memory_limit_text, "16.0 GiB");
}

/// A sweep and a captured step of one batch need not be equally fast.
TEST(BuildCompareView, TellsACapturedStepFromThePointsOfASweep) {
    Comparison comparison = make_comparison();
    CompareView view = build_compare_view(comparison);
    const CompareColumn& original = view.columns[0];
    ASSERT_TRUE(original.captured);
    EXPECT_EQ(original.captured->batch_size, 8);
    EXPECT_EQ(original.captured->text, "batch 8: 20.0 sequences/s, captured step");
    EXPECT_THAT(original.curve[1].text, HasSubstr("batch 8: 25.0 sequences/s (23.5 to 26.7) in the "
                                                  "sweep"));
    comparison.columns[0].sequences_per_s = 0;  // a file that holds a sweep only
    view = build_compare_view(comparison);
    EXPECT_FALSE(view.columns[0].captured);
}

TEST(BuildCompareView, SaysThatThereIsNoSweep) {
    Comparison comparison = make_comparison();
    for (ComparisonColumn& column : comparison.columns) {
        column.curve.clear();
        column.max_batch = {};
    }
    const CompareView view = build_compare_view(comparison);
    EXPECT_FALSE(view.has_max_batch);
    EXPECT_FALSE(view.has_throughput);
    EXPECT_THAT(view.no_max_batch_text, HasSubstr("These files hold no sweep"));
    EXPECT_THAT(view.no_throughput_text, HasSubstr("temposcope sweep"));
    EXPECT_EQ(view.columns[0].max_batch_text, "–");
    EXPECT_TRUE(view.columns[1].max_batch_change.empty());
}

TEST(BuildCompareView, SaysThatASweepMetNoLimit) {
    Comparison comparison = make_comparison();
    for (ComparisonColumn& column : comparison.columns) {
        column.curve.pop_back();
        column.max_batch = bounds_of(column.curve);
        column.memory_limit_bytes = -1;
    }
    const CompareView view = build_compare_view(comparison);
    EXPECT_TRUE(view.has_throughput);
    EXPECT_EQ(view.columns[1].max_batch_text, "≥ 12");
    EXPECT_THAT(view.no_max_batch_text, HasSubstr("with a memory limit"));
    EXPECT_TRUE(view.memory_limit_text.empty());
}

/// The sweep was stopped after batch 8 trained and batch 16 failed; the maximum lies between them.
TEST(BuildCompareView, GivesBoundsOfAMaximumBatchThatIsNotKnown) {
    Comparison comparison = make_comparison();
    ComparisonColumn& column = comparison.columns[1];
    column.curve = {make_point(4, 210, 10), make_point(8, 300, 20), out_of_memory_at(16)};
    column.max_batch = bounds_of(column.curve);
    const CompareView view = build_compare_view(comparison);
    EXPECT_FALSE(view.columns[1].max_batch_size);
    EXPECT_EQ(view.columns[1].max_batch_text, "≥ 8, < 16");
    EXPECT_EQ(view.columns[1].largest_batch, 8);
    EXPECT_TRUE(view.columns[1].max_batch_change.empty());
    EXPECT_TRUE(view.has_max_batch);
    column.curve = {out_of_memory_at(16)};
    column.max_batch = bounds_of(column.curve);
    EXPECT_EQ(build_compare_view(comparison).columns[1].max_batch_text, "< 16");
}

TEST(BuildCompareView, NamesNoLimitWhenTheLimitsDiffer) {
    Comparison comparison = make_comparison();
    comparison.columns[1].memory_limit_bytes = 8 * kGiB;
    EXPECT_TRUE(build_compare_view(comparison).memory_limit_text.empty());
}

TEST(BuildCompareView, ShowsABatchOfZeroWhenNothingFitted) {
    Comparison comparison = make_comparison();
    comparison.columns[0].curve = {out_of_memory_at(1)};
    comparison.columns[0].max_batch = bounds_of(comparison.columns[0].curve);
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[0].max_batch_text, "0");
    EXPECT_TRUE(view.columns[1].max_batch_change.empty());
    EXPECT_FALSE(view.columns[0].best_point);
}

TEST(BuildCompareView, DescribesEachSourceOnce) {
    Comparison comparison = make_comparison();
    EXPECT_EQ(build_compare_view(comparison).source,
              "Measured on the CPU (test processor), median of 3 steps");
    comparison.columns[1].steps = 1;
    EXPECT_EQ(build_compare_view(comparison).source,
              "Measured on the CPU (test processor), median of 3 steps; measured on the CPU (test "
              "processor), one step");
    comparison.columns[1].source = Source::kPredicted;
    comparison.columns[1].device = "v100-16gb";
    comparison.columns[1].steps = 1;
    EXPECT_EQ(build_compare_view(comparison).source,
              "Measured on the CPU (test processor), median of 3 steps; predicted (v100-16gb)");
}

TEST(BuildCompareView, GivesEveryTableRowACellPerColumn) {
    const CompareView view = build_compare_view(make_comparison());
    ASSERT_EQ(view.table.rows.size(), 2u);
    for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
        EXPECT_EQ(view.table.rows[i].size(), view.table.columns.size());
        EXPECT_EQ(view.table.tones[i].size(), view.table.columns.size());
    }
    EXPECT_EQ(view.table.rows[1][0], "tempo");
    EXPECT_EQ(view.table.rows[1][1], "12.0 GiB");
    EXPECT_EQ(view.table.rows[1][2], "-25.0 %");
    EXPECT_EQ(view.table.rows[0][2], "–");
}

TEST(BuildCompareView, AStepThatRanOutOfMemorySaysOfHowMuch) {
    Comparison comparison = make_comparison();
    for (ComparisonColumn& column : comparison.columns) {
        column.step_trace = std::make_shared<const Trace>();
        column.step_limit_bytes = 16 * kGiB;
    }
    comparison.columns[0].is_cut_off = true;
    comparison.columns[0].out_of_memory = "The step needs more.";
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[0].peak_text, "≥ 16.0 GiB of 16.0 GiB, out of memory");
    EXPECT_EQ(view.columns[0].short_peak_text, "≥ 16.0 GiB");
    EXPECT_EQ(view.columns[0].why_no_peak, "out of memory");
    EXPECT_EQ(view.columns[1].peak_text, "12.0 GiB");
    EXPECT_EQ(view.step_limit_bytes, 16 * kGiB);
    comparison.columns[1].step_limit_bytes = 32 * kGiB;  // no line is true of both
    EXPECT_EQ(build_compare_view(comparison).step_limit_bytes, 0);
    for (ComparisonColumn& column : comparison.columns) column.step_limit_bytes = 64 * kGiB;
    EXPECT_EQ(build_compare_view(comparison).step_limit_bytes, 0);  // far above all bars
}

TEST(BuildCompareView, ARecordedStepMaySaveNothing) {
    Comparison comparison = make_comparison();
    comparison.columns[1].saved_bytes = 0;
    EXPECT_EQ(build_compare_view(comparison).columns[1].saved_text, "0 B");
}

TEST(BuildCompareView, AStepThatWasCutOffMayHaveSavedSomething) {
    Comparison comparison = make_comparison();
    comparison.columns[1].steps = 0;
    comparison.columns[1].saved_bytes = 1024;
    EXPECT_EQ(build_compare_view(comparison).columns[1].saved_text, "1.00 KiB");
}

TEST(BuildCompareView, HoldsColumnsThatBringOnlyASweep) {
    Comparison comparison = make_comparison();
    ComparisonColumn& column = comparison.columns[1];
    column.peak_by_category = {};
    column.peak_allocated_bytes = column.saved_bytes = column.step_time_ns = column.steps = 0;
    column.sequences_per_s = 0;
    const CompareView view = build_compare_view(comparison);
    EXPECT_TRUE(view.columns[1].stack.empty());
    EXPECT_EQ(view.columns[1].peak_text, "–");
    EXPECT_EQ(view.columns[1].saved_text, "–");
    EXPECT_TRUE(view.columns[1].peak_change.empty());
    EXPECT_EQ(view.table.rows[1].back(), "–");
}

/// The step of a sweep may have another batch: bars say so, and their bytes are not compared.
TEST(BuildCompareView, NamesTheBatchWhereStepsHadSeveral) {
    Comparison comparison = make_comparison();
    EXPECT_EQ(build_compare_view(comparison).columns[0].batch_text, "");
    comparison.columns[1].batch_size = 1;
    const CompareView view = build_compare_view(comparison);
    EXPECT_EQ(view.columns[0].batch_text, "batch 8");
    EXPECT_EQ(view.columns[1].batch_text, "batch 1");
    EXPECT_TRUE(view.columns[1].peak_change.empty());
    EXPECT_TRUE(view.columns[1].saved_change.empty());
    EXPECT_TRUE(view.columns[1].throughput_change.empty());
    EXPECT_FALSE(view.columns[1].max_batch_change.empty());
    EXPECT_THAT(view.table.rows[1][1], testing::EndsWith(" at batch 1"));
}

TEST(BuildCompareView, IsEmptyForAnEmptyComparison) {
    const CompareView view = build_compare_view({});
    EXPECT_TRUE(view.columns.empty());
    EXPECT_TRUE(view.table.rows.empty());
    EXPECT_FALSE(view.has_peak);
}

}  // namespace
