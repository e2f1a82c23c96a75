#include "profiler/capture/recorder.h"
#include "profiler/capture/tracking_allocator.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>

/// Memory runs out under the recorder: what its rows say of the request, and of steps and ops that
/// do not come to their end.
namespace profiler {
namespace {

constexpr int64_t kAsked = 8 << 20;
constexpr int64_t kFree = 1 << 20;

class Failures : public testing::Test {
protected:
    ~Failures() override { allocator_.set_limit(-1); }

    /// A request for kAsked bytes where kFree are left.
    void run_out_of_memory() {
        allocator_.set_limit(allocator_.allocated_bytes() + kFree);
        EXPECT_THROW(at::zeros({kAsked}, at::kByte), c10::OutOfMemoryError);
        allocator_.set_limit(-1);
    }
    Failure failure() const { return trace_.failures[Id<Failure>(0)]; }
    StepKind kind_of_step(std::size_t row = 0) const {
        return trace_.steps.get<&Step::kind>(Id<Step>(row));
    }

    TrackingAllocator& allocator_ = TrackingAllocator::instance();
    Trace trace_;
    Recorder recorder_{trace_};
};

TEST_F(Failures, ARefusedRequestIsARowWithWhatRanAndWhatWasFree) {
    recorder_.start();
    recorder_.begin_step();
    recorder_.on_phase_begin(models::TrainingPhase::kForward);
    const int64_t before = allocator_.allocated_bytes();
    {
        const models::RootModuleScope module("encoder.layer.0");
        run_out_of_memory();
    }
    ASSERT_EQ(trace_.failures.size(), 1U);
    const Failure refused = failure();
    EXPECT_EQ(refused.requested_bytes, kAsked);
    EXPECT_EQ(refused.free_bytes, kFree);
    EXPECT_EQ(refused.allocated_bytes, before);
    EXPECT_EQ(refused.reserved_bytes, before);
    EXPECT_EQ(refused.limit_bytes, before + kFree);
    EXPECT_EQ(refused.step, Id<Step>(0));
    EXPECT_EQ(refused.phase, Id<Phase>(0));
    EXPECT_EQ(trace_.text(trace_.ops.get<&Op::name>(refused.op)), "aten::zeros");
    EXPECT_EQ(trace_.text(trace_.module_paths.get<&ModulePath::path>(refused.module_path)),
              "encoder.layer.0");
    EXPECT_EQ(trace_.text(trace_.threads.get<&Thread::name>(refused.thread)), "main");
    EXPECT_EQ(refused.outcome, FailureOutcome::kAbsorbed);
    EXPECT_FALSE(refused.error.valid());

    const AllocatorEvent event =
        trace_.allocator_events[Id<AllocatorEvent>(trace_.allocator_events.size() - 1)];
    EXPECT_EQ(event.action, AllocatorAction::kOom);
    EXPECT_EQ(event.event, refused.event);
    EXPECT_EQ(event.size_bytes, kAsked);
    EXPECT_EQ(event.free_bytes, kFree);
}

TEST_F(Failures, WithoutOpsARequestIsStillARow) {
    recorder_.start_allocations();
    run_out_of_memory();
    ASSERT_EQ(trace_.failures.size(), 1U);
    EXPECT_FALSE(failure().op.valid());
    EXPECT_FALSE(failure().step.valid());
}

TEST_F(Failures, AStepIsBrokenUntilItsEnd) {
    recorder_.start();
    recorder_.begin_step();
    recorder_.on_phase_begin(models::TrainingPhase::kForward);
    const at::Tensor block = at::ones({1024});
    {
        const auto lock = recorder_.lock_rows();
        recorder_.end_so_far();
    }
    EXPECT_EQ(kind_of_step(), StepKind::kBroken);
    const Step broken = trace_.steps[Id<Step>(0)];
    EXPECT_GT(broken.last_event, broken.first_event);
    EXPECT_EQ(trace_.phases.get<&Phase::last_event>(Id<Phase>(0)), broken.last_event);
    recorder_.on_phase_end(models::TrainingPhase::kForward);
    recorder_.end_step(0, StepKind::kFirst);
    EXPECT_EQ(kind_of_step(), StepKind::kFirst);
    recorder_.begin_step();
    recorder_.end_step(0);
    EXPECT_EQ(kind_of_step(1), StepKind::kWhole);
}

TEST_F(Failures, OpsPauseAndGoOnWhileAllocationsAreRecorded) {
    recorder_.start_allocations();
    const auto num_ops_of = [&] {
        const std::size_t before = trace_.ops.size();
        const std::size_t blocks = trace_.allocations.size();
        const at::Tensor tensor = at::ones({16});
        EXPECT_GT(trace_.allocations.size(), blocks);
        return trace_.ops.size() - before;
    };
    EXPECT_EQ(num_ops_of(), 0U);
    for (int time = 0; time < 2; ++time) {
        recorder_.start_ops();
        EXPECT_GT(num_ops_of(), 0U);
        recorder_.stop_ops();
        EXPECT_EQ(num_ops_of(), 0U);
    }
}

TEST_F(Failures, AnOpThatEndsInAPauseMakesNoLaterAllocation) {
    recorder_.start();
    {
        at::RecordFunction op(at::RecordScope::FUNCTION);
        ASSERT_TRUE(op.isActive());
        op.before("aten::outer");
        recorder_.stop_ops();
    }
    const at::Tensor block = at::ones({16});
    const Id<Allocation> newest(trace_.allocations.size() - 1);
    EXPECT_FALSE(trace_.allocations.get<&Allocation::op>(newest).valid());
}

}  // namespace
}  // namespace profiler
