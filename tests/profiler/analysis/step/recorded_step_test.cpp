#include "profiler/analysis/step/recorded_step.h"

#include "profiler/analysis/step/breakdown.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/keepers.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/analysis/step/throughput.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace tests;
using testing::ElementsAre;
using testing::IsEmpty;

/// Steps of these kinds; each allocates one block of so many bytes, and frees it in a phase.
TraceBuilder steps_of(std::initializer_list<std::pair<StepKind, int64_t>> steps) {
    TraceBuilder b;
    for (const auto& [kind, bytes] : steps) {
        b.begin_step(PhaseKind::kForward);
        b.free(b.allocate({.bytes = bytes}));
        b.end_step();
        b.trace().steps.set<&Step::kind>(Id<Step>(b.trace().steps.size() - 1), kind);
    }
    return b;
}

TEST(WholeSteps, AreTheWholeOnesElseTheFirst) {
    using enum StepKind;
    const Trace all = steps_of({{kFirst, 9}, {kWhole, 5}, {kWhole, 6}, {kBroken, 7}}).finish();
    EXPECT_THAT(whole_steps(all), ElementsAre(Id<Step>(1), Id<Step>(2)));
    EXPECT_EQ(last_step(all), Id<Step>(2));
    EXPECT_EQ(find_peak(all).allocated_bytes, 6);
    EXPECT_EQ(step_times_ns(all).size(), 2U);
    const Trace first = steps_of({{kFirst, 9}, {kBroken, 7}}).finish();
    EXPECT_THAT(whole_steps(first), ElementsAre(Id<Step>(0)));
    EXPECT_EQ(find_peak(first).allocated_bytes, 9);
    const Trace broken = steps_of({{kBroken, 7}}).finish();
    EXPECT_THAT(whole_steps(broken), IsEmpty());
    EXPECT_EQ(last_step(broken), Id<Step>(0));
    EXPECT_EQ(find_peak(broken).allocated_bytes, 7);
}

/// Files of version 2 have no kinds.
TEST(WholeSteps, OfAnOlderFileLeaveOutAStepThatANoteCutsOff) {
    using enum StepKind;
    for (const std::string_view code : {kCutOffStep, kRanOutOfMemory}) {
        TraceBuilder b = steps_of({{kWhole, 5}, {kWhole, 6}});
        add_diagnostic(b.trace(), {.code = code});
        const Trace trace = b.finish();
        EXPECT_EQ(kind_of(trace, Id<Step>(1)), kBroken);
        EXPECT_EQ(last_whole_step(trace), Id<Step>(0));
    }
}

TEST(PhasePeaks, AreOfTheWholeSteps) {
    using enum StepKind;
    const Trace trace = steps_of({{kFirst, 9}, {kWhole, 5}}).finish();
    EXPECT_EQ(find_phase_peaks(trace)[static_cast<std::size_t>(PhaseKind::kForward)], 5);
}

/// A program that loads a model, trains a step and then asks for too much.
class FailedTrace : public testing::Test {
protected:
    FailedTrace() {
        model_ = b_.allocate({.bytes = 100, .category = Category::kParameter});
        b_.begin_step(PhaseKind::kForward);
        b_.free(b_.allocate({.bytes = 50}));
        b_.end_step();
        b_.free(b_.allocate({.bytes = 70}));  // a validation
        b_.begin_step(PhaseKind::kForward);
        held_ = b_.allocate({.bytes = 400, .category = Category::kHeld});
        failure_ = {.error = b_.text("OutOfMemoryError"),
                    .device = Id<Device>(0),
                    .event = b_.next_event(),
                    .requested_bytes = 999,
                    .step = Id<Step>(1)};
        b_.end_step();
        b_.trace().steps.set<&Step::kind>(Id<Step>(1), StepKind::kBroken);
        b_.free(held_);
        b_.allocate({.bytes = 5000});  // while the program ends
    }

    Trace failed() {
        b_.trace().failures.append(failure_);
        return b_.finish();
    }

    TraceBuilder b_;
    Id<Allocation> model_, held_;
    Failure failure_;
};

TEST_F(FailedTrace, HasItsPeakBeforeTheFailure) {
    const Trace trace = failed();
    const PeakReport peak = find_peak(trace);
    EXPECT_EQ(peak.allocated_bytes, 500);
    EXPECT_EQ(peak.step, Id<Step>(1));
    EXPECT_THAT(peak.live, ElementsAre(held_, model_));
    EXPECT_EQ(peak.by_category[static_cast<std::size_t>(Category::kHeld)], 400);
    EXPECT_EQ(break_down(trace, peak, GroupBy::kClass).front().name, "held");
    EXPECT_EQ(last_step(trace), Id<Step>(0)) << "of which other figures are";
    EXPECT_TRUE(ran_out_of_memory(trace));
    EXPECT_EQ(why_out_of_memory(trace), "Out of memory in step 2: 999 B asked.");
    EXPECT_EQ(report_diagnostics(trace, report_step(trace)).front().code, "failure_ended");
}

TEST_F(FailedTrace, ThatCaughtTheErrorHasThePeakOfItsSteps) {
    failure_.outcome = FailureOutcome::kCaught;
    const Trace trace = failed();
    EXPECT_EQ(find_peak(trace).allocated_bytes, 150);
    EXPECT_FALSE(ran_out_of_memory(trace));
}

TEST_F(FailedTrace, OfAnotherErrorHasThePeakOfItsSteps) {
    failure_ = {.error = b_.text("ValueError"), .event = failure_.event};
    EXPECT_EQ(find_peak(failed()).allocated_bytes, 150);
}

TEST(FailedBeforeItsFirstStep, ATraceStillHasAPeak) {
    for (const int64_t requested_bytes : {int64_t{999}, int64_t{-1}}) {
        TraceBuilder b;
        b.allocate({.bytes = 30});
        EXPECT_FALSE(has_recorded_step(b.trace()));
        b.trace().failures.append({.event = b.next_event(), .requested_bytes = requested_bytes});
        b.allocate({.bytes = 1000});
        const Trace trace = b.finish();
        EXPECT_TRUE(has_recorded_step(trace));
        EXPECT_EQ(find_peak(trace).allocated_bytes, 30);
    }
}

TEST(KeepersOfBlocks, AreThoseOfTheLastQuestion) {
    TraceBuilder b;
    const auto block = b.allocate({.bytes = 8});
    const auto add = [&](int64_t event, std::string_view text) {
        b.trace().keepers.append({.allocation = block, .event = event, .text = b.text(text)});
    };
    add(5, "`x`, a.py:1");
    add(7, "list `history[0]`, a.py:2");
    add(7, "`logits`, a.py:3");
    add(6, "`y`, a.py:1");
    const Trace trace = b.finish();
    const Keepers keepers(trace);
    EXPECT_EQ(keepers.text_of(block), "list `history[0]`, a.py:2; `logits`, a.py:3");
    EXPECT_EQ(keepers.of(block).size(), 2U);
    EXPECT_EQ(keepers.text_of(Id<Allocation>()), "");
}

}  // namespace
