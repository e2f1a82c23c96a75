#include "profiler/capture/recorder.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include <cstdint>

/// Where steps begin and end under the recorder, and which phases are theirs.
namespace profiler {
namespace {

using models::TrainingPhase;

class RecordedSteps : public testing::Test {
protected:
    /// `allocates`: some event happens in it.
    void run(TrainingPhase phase, bool allocates = true) {
        recorder_.on_phase_begin(phase);
        if (allocates) at::ones({1024});
        recorder_.on_phase_end(phase);
    }
    Phase phase(std::size_t row) const { return trace_.phases[Id<Phase>(row)]; }
    Step step(std::size_t row) const { return trace_.steps[Id<Step>(row)]; }

    Trace trace_;
    Recorder recorder_{trace_};
};

TEST_F(RecordedSteps, AStepMayTurnOutToHaveEndedBefore) {
    recorder_.start();
    recorder_.begin_step();
    run(TrainingPhase::kBackward);
    run(TrainingPhase::kOptimizer, /*allocates=*/false);  // SGD allocates nothing
    recorder_.on_phase_begin(TrainingPhase::kOptimizer);
    const Recorder::StepStart mark = recorder_.next_step_start();
    at::ones({1024});
    recorder_.on_phase_end(TrainingPhase::kOptimizer);
    run(TrainingPhase::kForward);
    recorder_.end_step(1.5, StepKind::kWhole, &mark);
    EXPECT_FALSE(phase(3).step.valid());
    recorder_.begin_step(mark);
    recorder_.stop();

    ASSERT_EQ(trace_.steps.size(), 2U);
    EXPECT_EQ(step(0).last_event, mark.event);
    EXPECT_EQ(step(0).loss, 1.5);
    EXPECT_EQ(step(1).first_event, mark.event);
    for (const std::size_t row : {0U, 1U, 2U}) EXPECT_EQ(phase(row).step, Id<Step>(0));
    EXPECT_EQ(phase(2).last_event, mark.event) << "the phase that went on ends at the mark";
    EXPECT_EQ(phase(3).step, Id<Step>(1));
}

TEST_F(RecordedSteps, InferenceBetweenTwoStepsIsOfTheNextOne) {
    recorder_.start();
    recorder_.begin_step();
    run(TrainingPhase::kForward);
    recorder_.end_step(0);
    const Recorder::StepStart start = recorder_.next_step_start();
    run(TrainingPhase::kInference);
    recorder_.begin_step(start);
    run(TrainingPhase::kForward);
    recorder_.end_step(0);
    recorder_.stop();
    EXPECT_EQ(phase(0).step, Id<Step>(0));
    EXPECT_EQ(phase(1).step, Id<Step>(1));
    EXPECT_EQ(phase(1).kind, PhaseKind::kInference);
    EXPECT_EQ(phase(2).step, Id<Step>(1));
}

TEST_F(RecordedSteps, WithoutTrainingEachInferenceIsAStep) {
    recorder_.start();
    run(TrainingPhase::kInference);
    recorder_.on_phase_begin(TrainingPhase::kInference);  // it has not ended
    at::ones({1024});
    {
        const auto lock = recorder_.lock_rows();
        EXPECT_EQ(recorder_.make_steps_of_inferences(), 2);
    }
    recorder_.stop();
    for (const std::size_t row : {0U, 1U}) {
        EXPECT_EQ(phase(row).kind, PhaseKind::kForward);
        EXPECT_EQ(phase(row).step, Id<Step>(row));
        EXPECT_GT(step(row).last_event, step(row).first_event);
        EXPECT_GT(step(row).end_ns, step(row).start_ns);
    }
    EXPECT_EQ(step(0).kind, StepKind::kFirst);
    EXPECT_EQ(step(1).kind, StepKind::kWhole);
}

}  // namespace
}  // namespace profiler
