#include "profiler/analysis/ops/op_usage.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/trace_notes.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string_view>

namespace profiler {
namespace {

using ::tests::TraceBuilder;

class OpUsageTest : public testing::Test {
protected:
    void launch(std::string_view name, Id<Op> op, int64_t device_ns) {
        b.trace().kernels.append(
            {.name = b.text(name), .op = op, .start_ns = 100, .end_ns = 100 + device_ns});
    }
    Id<Op> op_in(Id<Op> parent, std::string_view name) {
        const Id<Op> op = b.op(name);
        b.trace().ops.set<&Op::parent>(op, parent);
        return op;
    }
    void free_by(Id<Allocation> allocation, Id<Op> op) {
        b.free(allocation);
        b.trace().allocations.set<&Allocation::freeing_op>(allocation, op);
    }

    TraceBuilder b;
};

TEST_F(OpUsageTest, AddsUpCallsOfOneOpByPhaseAndKernel) {
    b.begin_step(PhaseKind::kForward);
    const auto first = b.op("aten::addmm");
    const auto second = b.op("aten::addmm");
    launch("gemm", first, 30);
    launch("gemm", second, 40);
    launch("bias", second, 5);
    b.begin_phase(PhaseKind::kBackward);
    launch("gemm", b.op("aten::addmm"), 10);
    const Trace trace = b.finish();
    const auto usage = op_usage(trace);
    ASSERT_EQ(usage.size(), 2U);
    EXPECT_EQ(usage[0].phase, PhaseKind::kForward);
    EXPECT_EQ(usage[0].num_calls, 2);
    EXPECT_EQ(usage[0].device_ns, 75);
    ASSERT_EQ(usage[0].kernels.size(), 2U);
    EXPECT_EQ(usage[0].kernels[0].name, "gemm");
    EXPECT_EQ(usage[0].kernels[0].num_launches, 2);
    EXPECT_EQ(usage[0].kernels[0].device_ns, 70);
    EXPECT_EQ(usage[1].phase, PhaseKind::kBackward);
    EXPECT_EQ(usage[1].device_ns, 10);
}

TEST_F(OpUsageTest, ScratchIsWhatACallTakesAndGivesBackItself) {
    b.begin_step(PhaseKind::kForward);
    const auto sum = b.op("aten::sum");
    const auto helper = op_in(sum, "aten::arange");
    const auto buffer = b.allocate({.bytes = 100, .op = sum});
    free_by(buffer, sum);
    const auto kept = b.allocate({.bytes = 60, .op = helper});
    const auto more = b.allocate({.bytes = 50, .op = sum});  // 110 bytes at once
    free_by(kept, sum);
    free_by(more, sum);
    const auto result = b.allocate({.bytes = 1000, .op = sum});
    const auto other = b.op("aten::add");
    free_by(result, other);  // another call frees it
    const auto engine = b.op("autograd::engine::evaluate_function: MulBackward0");
    const auto inner = op_in(engine, "aten::mul");
    free_by(b.allocate({.bytes = 500, .op = inner}), engine);  // a gradient that dies
    const Trace trace = b.finish();
    const auto usage = op_usage(trace);
    ASSERT_EQ(usage.size(), 1U);
    EXPECT_EQ(usage[0].op, "aten::sum");
    EXPECT_EQ(usage[0].scratch_bytes, 110);
}

TEST_F(OpUsageTest, OnlyTheLastStepCounts) {
    for (int i = 0; i < 3; ++i) {
        b.begin_step(PhaseKind::kForward);
        launch("gemm", b.op("aten::mm"), 7);
        b.end_step();
    }
    const Trace trace = b.finish();
    const auto usage = op_usage(trace);
    ASSERT_EQ(usage.size(), 1U);
    EXPECT_EQ(usage[0].num_calls, 1);
    EXPECT_TRUE(op_usage(Trace()).empty());
}

TEST_F(OpUsageTest, AStepThatWasCutOffCountsOnlyIfThereIsNoOther) {
    const auto step = [&](int64_t device_ns) {
        b.begin_step(PhaseKind::kForward);
        launch("gemm", b.op("aten::mm"), device_ns);
        b.end_step();
    };
    step(7);
    add_diagnostic(b.trace(), {.code = kCutOffStep});
    EXPECT_EQ(op_usage(b.trace()).at(0).device_ns, 7);
    step(3);
    EXPECT_EQ(op_usage(b.trace()).at(0).device_ns, 7);
}

/// A trace of joined ranks has the ops of all of them; figures are of the one that the run names.
TEST_F(OpUsageTest, OfJoinedRanksTheOthersDoNotCount) {
    b.begin_step(PhaseKind::kForward);
    for (const char* name : {"main thread of rank 0", "main thread of rank 1"}) {
        const auto op = b.op("aten::mm");
        launch("gemm", op, 7);
        const Thread thread{.name = b.text(name)};
        b.trace().ops.set<&Op::thread>(op, b.trace().threads.append(thread));
    }
    Trace trace = b.finish();
    add_diagnostic(trace, {.code = kJoinedRanks, .count = 2, .explanation = "2 ranks."});
    const auto usage = op_usage(trace);
    ASSERT_EQ(usage.size(), 1U);
    EXPECT_EQ(usage[0].num_calls, 1);
    EXPECT_EQ(usage[0].device_ns, 7);
}

/// Without a device the time of an op is its own on the host, in files of other tools.
TEST_F(OpUsageTest, OfAnImportedTraceOfTheHostShowsItsTimes) {
    const auto outer = b.op("aten::linear");
    const auto inner = op_in(outer, "aten::addmm");
    Trace trace = b.finish();
    trace.runs.set<&profiler::Run::source>(Id<profiler::Run>(0), Source::kImported);
    trace.ops.set<&Op::start_ns>(outer, 0);
    trace.ops.set<&Op::end_ns>(outer, 100);
    trace.ops.set<&Op::start_ns>(inner, 20);
    trace.ops.set<&Op::end_ns>(inner, 90);
    const auto usage = op_usage(trace);
    ASSERT_EQ(usage.size(), 2U);
    EXPECT_EQ(usage[0].op, "aten::addmm");
    EXPECT_EQ(usage[0].device_ns, 70);
    EXPECT_EQ(usage[1].device_ns, 30);
}

TEST_F(OpUsageTest, ADamagedTreeOfCallsEnds) {
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op("aten::mm");
    const auto other = b.op("aten::sum");
    b.trace().ops.set<&Op::parent>(op, op);
    free_by(b.allocate({.bytes = 8, .op = op}), other);
    EXPECT_TRUE(op_usage(b.finish()).empty());
}

}  // namespace
}  // namespace profiler
