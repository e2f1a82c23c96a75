#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/step/describe_run.h"
#include "tests/profiler/analysis/compare/comparison_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

/// What a comparison says about step times.
namespace {

using namespace tests;
using testing::HasSubstr;
using testing::Not;

TEST(Compare, SaysWhenThePeaksAreEqual) {
    const auto sentence = compare_two({}, {.recipe = "tempo"}).sentence;
    EXPECT_THAT(sentence,
                HasSubstr("in the same memory as original (1000 B) and shows no difference in step "
                          "time at a batch of 8 (not measured alternately)."));
}

TEST(Compare, SaysNothingOfSpeedThatTheStepsDoNotShow) {
    const auto sentence = [](std::vector<int64_t> baseline_ns, std::vector<int64_t> other_ns) {
        return compare_two({.step_times_ns = std::move(baseline_ns)},
                           {.recipe = "tempo", .bytes = 600, .step_times_ns = std::move(other_ns)})
            .sentence;
    };
    EXPECT_THAT(sentence({9'000'000}, {1'000'000}), Not(HasSubstr("time"))) << "one step";
    EXPECT_THAT(sentence({9'000'000, 1'000'000}, {2'000'000, 3'000'000}),
                HasSubstr("takes steps too uneven to compare their times"));
    EXPECT_THAT(sentence({3'000'000, 2'000'000}, {2'000'000, 3'000'000}),
                HasSubstr("shows no difference in step time"));
}

/// The machine slows down by half during the run: medians of the two recipes overlap, pairs do not.
TEST(Compare, PairsStepsThatWereMeasuredInTurn) {
    const auto comparison = [](const char* other_run) {
        return compare_two({.step_times_ns = {100'000'000, 100'000'000, 100'000'000, 120'000'000,
                                              150'000'000, 150'000'000},
                            .turns_run = "7"},
                           {.recipe = "tempo",
                            .bytes = 600,
                            .step_times_ns = {108'000'000, 107'000'000, 109'000'000, 132'000'000,
                                              159'000'000, 162'000'000},
                            .turns_run = other_run});
    };
    const Comparison paired = comparison("7");
    const ComparisonColumn &original = paired.columns[0], &tempo = paired.columns[1];
    ASSERT_TRUE(tempo.step_ratio);
    EXPECT_DOUBLE_EQ(tempo.step_ratio->median, 1.08);
    EXPECT_DOUBLE_EQ(tempo.step_ratio->low, 1.06);
    EXPECT_DOUBLE_EQ(tempo.step_ratio->high, 1.1);
    EXPECT_EQ(tempo.step_ratio->pairs, 6);
    EXPECT_FALSE(original.step_ratio);
    EXPECT_FALSE(speed_is_uncertain(tempo, original));
    EXPECT_THAT(paired.sentence,
                HasSubstr("40.0 % less memory than original (600 B instead of 1000 B) and takes "
                          "8.0 % more time a step at a batch of 8 (+6.0 % to +10.0 % in 6 pairs of "
                          "steps)."));
    for (const char* run : {"8", ""}) {
        const Comparison unpaired = comparison(run);
        EXPECT_FALSE(unpaired.columns[1].step_ratio) << run;
        EXPECT_TRUE(speed_is_uncertain(unpaired.columns[1], unpaired.columns[0]));
        EXPECT_THAT(unpaired.sentence, HasSubstr("(not measured alternately)"));
    }
}

TEST(Compare, SeesNoDifferenceWherePairsDisagree) {
    const Comparison comparison =
        compare_two({.step_times_ns = std::vector<int64_t>(6, 100'000'000), .turns_run = "7"},
                    {.recipe = "tempo",
                     .bytes = 600,
                     .step_times_ns = {98'000'000, 110'000'000, 101'000'000, 102'000'000,
                                       103'000'000, 104'000'000},
                     .turns_run = "7"});
    EXPECT_THAT(comparison.sentence,
                HasSubstr("shows no difference in step time at a batch of 8 (-2.0 % to "
                          "+10.0 % in 6 pairs of steps)."));
}

TEST(Compare, ClaimsNoDifferenceOfTooFewPairs) {
    for (const std::size_t pairs : {2u, 3u, 5u}) {
        const auto steps = [pairs](int64_t step_ns) {
            return std::vector<int64_t>(pairs, step_ns);
        };
        const Comparison comparison =
            compare_two({.step_times_ns = steps(100'000'000), .turns_run = "7"},
                        {.recipe = "tempo",
                         .bytes = 600,
                         .step_times_ns = steps(200'000'000),
                         .turns_run = "7"});
        EXPECT_TRUE(speed_is_uncertain(comparison.columns[1], comparison.columns[0])) << pairs;
        EXPECT_THAT(comparison.sentence,
                    HasSubstr("and shows no certain difference in step time at a batch of 8 (" +
                              std::to_string(pairs) +
                              " pairs of steps are too few to tell; capture 6 steps or more)."));
        EXPECT_THAT(comparison.sentence, Not(HasSubstr("more time")));
    }
}

TEST(Compare, SaysWhatAPredictedRecipeCostsThoughItHasOneStep) {
    const auto predicted = [](const char* recipe, int64_t bytes, int64_t step_ns) {
        return Spec{.recipe = recipe,
                    .bytes = bytes,
                    .step_times_ns = {step_ns},
                    .source = Source::kPredicted};
    };
    const auto sentence = [&](int64_t step_ns) {
        return compare_two(predicted("original", 1000, 100'000'000),
                           predicted("tempo", 600, step_ns))
            .sentence;
    };
    EXPECT_THAT(sentence(104'300'000),
                HasSubstr("and takes about 4 % more time a step at a batch"));
    EXPECT_THAT(sentence(100'300'000),
                HasSubstr("and takes about the same time a step at a batch"));
}

TEST(Compare, SaysNothingOfSpeedsOnABusyMachine) {
    const auto comparison = compare_two(
        {.step_times_ns = {8'000'000, 9'000'000}},
        {.recipe = "tempo", .step_times_ns = {1'000'000, 1'100'000}, .warning = kMachineBusy});
    EXPECT_THAT(comparison.sentence, HasSubstr("busy with something else while tempo ran"));
    EXPECT_THAT(comparison.sentence, Not(HasSubstr("less time")));
    EXPECT_THAT(comparison.notes,
                testing::ElementsAre(HasSubstr("while tempo ran: those times are left out")));
}

TEST(Compare, SaysThatASweepRanOnABusyMachine) {
    const auto busy = make_trace(
        {.step_times_ns = {}, .sweep = {{1, {1'000'000}}, {2, {}}}, .warning = kMachineBusy});
    const auto comparison = compare({{"a", busy}}).value();
    EXPECT_TRUE(comparison.columns[0].sweep_was_busy);
    EXPECT_THAT(comparison.notes, testing::Contains(HasSubstr("The machine was busy")));
}

TEST(Compare, SaysOnceHowFarOffPredictedTimesMayBe) {
    const auto predicted = [](const char* recipe) {
        Trace trace = *make_trace(
            {.recipe = recipe, .source = Source::kPredicted, .warning = kTimesNotCalibrated});
        trace.runs.set<&Run::device_name>(Id<profiler::Run>(0), trace.strings.intern("RTX 3090"));
        return std::make_shared<const Trace>(trace);
    };
    const auto comparison =
        compare({{"a", predicted("original")}, {"b", predicted("tempo")}}).value();
    EXPECT_THAT(comparison.notes,
                testing::ElementsAre(HasSubstr("on RTX 3090 are predicted: expect ±20 %")));
}

TEST(TurnsRunOf, ReadsNothingFromWhatIsNotThere) {
    Trace trace = *make_trace({.turns_run = "7"});
    EXPECT_EQ(turns_run_of(trace), "7");
    for (const char* software :
         {"", "[1]", "{}", R"({"measured_in_turn":3})", R"({"measured_in_turn":{"run":"7"}})",
          R"({"measured_in_turn":{"run":7,"recipes":2}})",
          R"({"measured_in_turn":{"run":"7","recipes":1}})"}) {
        trace.runs.set<&Run::software>(Id<profiler::Run>(0), trace.strings.intern(software));
        EXPECT_EQ(turns_run_of(trace), "") << software;
    }
}

}  // namespace
