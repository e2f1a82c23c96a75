#include "profiler/analysis/ops/movement.h"

#include "profiler/analysis/step/origin.h"

#include "profiler/trace/recomputation.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string_view>

namespace profiler {
namespace {

using ::tests::TraceBuilder;

struct CostOfCall {
    int64_t flop = 0;
    int64_t words_read = 0;
    int64_t words_written = 0;
    OpClass op_class = OpClass::kElementWise;
};

class MovementTest : public testing::Test {
protected:
    Id<Op> call(std::string_view name, Id<ModulePath> module, const CostOfCall& cost) {
        const Id<Op> op = b.op(name, module);
        b.trace().ops.set<&Op::flop>(op, cost.flop);
        b.trace().ops.set<&Op::read_words>(op, cost.words_read);
        b.trace().ops.set<&Op::written_words>(op, cost.words_written);
        b.trace().ops.set<&Op::op_class>(op, cost.op_class);
        b.trace().ops.set<&Op::start_ns>(op, 0);
        b.trace().ops.set<&Op::end_ns>(op, 100);
        return op;
    }
    void put_into(Id<Op> op, Id<Op> parent) { b.trace().ops.set<&Op::parent>(op, parent); }
    void launch(Id<Op> op, int64_t device_ns) {
        b.trace().kernels.append(
            {.name = b.text("kernel"), .op = op, .start_ns = 50, .end_ns = 50 + device_ns});
    }
    Id<Tensor> tensor(std::string_view name, DType dtype) {
        const Id<Storage> storage = b.trace().storages.append({});
        return b.trace().tensors.append({.storage = storage, .name = b.text(name), .dtype = dtype});
    }
    void touch(Id<Op> op, Id<Tensor> of, Access access, int64_t words) {
        b.trace().op_tensors.append({.op = op, .tensor = of, .access = access, .words = words});
    }
    void begin() { b.begin_step(PhaseKind::kForward); }
    MovementReport report_of_layers() { return movement_of(b.finish(), MovementScope::kLayers); }

    TraceBuilder b;
    const Id<ModulePath> layer0_ = b.module_path("encoder.layer.0", 0);
    const Id<ModulePath> layer1_ = b.module_path("encoder.layer.1", 1);
    const Id<ModulePath> dense0_ = b.module_path("encoder.layer.0.output.dense", 0, layer0_);
    const Id<ModulePath> dense1_ = b.module_path("encoder.layer.1.output.dense", 1, layer1_);
    const Id<ModulePath> head_ = b.module_path("cls.decoder");
};

TEST_F(MovementTest, AddsUpTheCallsOfAllLayersInOneRow) {
    begin();
    const CostOfCall cost{.flop = 60, .words_read = 20, .words_written = 10};
    launch(call("aten::addmm", dense0_, cost), 30);
    launch(call("aten::addmm", dense1_, cost), 40);
    launch(call("aten::addmm", head_, cost), 1000);
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 1U);
    const MovementRow& row = report.rows[0];
    EXPECT_EQ(row.name, "aten::addmm");
    EXPECT_EQ(row.module, "output.dense");
    EXPECT_EQ(row.phase, PhaseKind::kForward);
    EXPECT_EQ(row.work.num_calls, 2);
    EXPECT_EQ(row.work.flop, 120);
    EXPECT_EQ(row.work.words_read, 40);
    EXPECT_EQ(row.work.words_written, 20);
    EXPECT_EQ(row.work.time_ns, 70);
    EXPECT_EQ(row.call, Id<Op>(1));  // the longest
    EXPECT_TRUE(report.has_device_times);
    ASSERT_EQ(report.layers.size(), 2U);
    EXPECT_EQ(report.layers[1].name, "encoder.layer.1");
    EXPECT_EQ(report.layers[1].work.time_ns, 40);
}

TEST_F(MovementTest, ScopeAllAddsWhatRunsOutsideOfLayers) {
    begin();
    const CostOfCall cost{.flop = 60, .words_read = 20, .words_written = 10};
    call("aten::addmm", dense0_, cost);
    call("aten::addmm", head_, cost);
    b.begin_phase(PhaseKind::kOptimizer);
    call("aten::_foreach_add_", {}, cost);
    const Trace trace = b.finish();
    EXPECT_EQ(movement_of(trace, MovementScope::kLayers).rows.size(), 1U);
    const MovementReport all = movement_of(trace, MovementScope::kAll);
    ASSERT_EQ(all.rows.size(), 3U);
    EXPECT_EQ(all.rows[1].module, "cls.decoder");
    ASSERT_EQ(all.layers.size(), 3U);
    EXPECT_EQ(all.layers[1].name, "cls");
    EXPECT_EQ(all.layers[2].name, "optimizer");
}

TEST_F(MovementTest, ACallInsideACountedCallBelongsToIt) {
    begin();
    const CostOfCall cost{.flop = 8, .words_read = 8, .words_written = 8};
    const Id<Op> engine = call("autograd::engine::evaluate_function: MulBackward0", dense0_, {});
    const Id<Op> outer = call("aten::mul_", dense0_, cost);
    put_into(outer, engine);
    const Id<Op> inner = call("aten::mul", dense0_, cost);
    put_into(inner, outer);
    launch(inner, 25);
    launch(engine, 3);
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].name, "aten::mul_");
    EXPECT_EQ(report.rows[0].work.flop, 8);
    EXPECT_EQ(report.rows[0].work.time_ns, 25);
    EXPECT_EQ(report.other_time_ns, 3);
}

TEST_F(MovementTest, BackwardOpsBelongToTheModuleOfTheirForwardOp) {
    begin();
    const CostOfCall cost{.flop = 8, .words_read = 8, .words_written = 8};
    const Id<Op> forward = call("aten::gelu", dense0_, cost);
    b.begin_phase(PhaseKind::kBackward);
    const Id<Op> backward = call("aten::gelu_backward", {}, cost);
    b.trace().ops.set<&Op::forward>(backward, forward);
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 2U);
    EXPECT_EQ(report.rows[1].module, "output.dense");
    EXPECT_EQ(report.rows[1].phase, PhaseKind::kBackward);
}

TEST_F(MovementTest, RowsAreMeansOverTheSteps) {
    for (int step = 0; step < 2; ++step) {
        begin();
        launch(call("aten::gelu", dense0_, {.flop = 8, .words_read = 8, .words_written = 8}),
               step == 0 ? 10 : 30);
        b.end_step();
    }
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].work.num_calls, 1);
    EXPECT_EQ(report.rows[0].work.flop, 8);
    EXPECT_EQ(report.rows[0].work.time_ns, 20);
}

TEST_F(MovementTest, BytesFollowTheTypesOfTheTensors) {
    begin();
    const Id<Op> op = call("aten::copy_", dense0_, {.words_read = 10, .words_written = 10});
    touch(op, tensor("x", DType::kFloat32), Access::kRead, 10);
    touch(op, tensor("y", DType::kBFloat16), Access::kWrite, 10);
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_DOUBLE_EQ(report.rows[0].work.bytes, 60);
}

TEST_F(MovementTest, ACopyDoesNotReadWhatItOverwrites) {
    begin();
    const Id<Op> op = call("aten::copy_", dense0_, {.words_read = 20, .words_written = 10});
    const Id<Tensor> target = tensor("y", DType::kBFloat16);
    touch(op, target, Access::kRead, 10);
    touch(op, tensor("x", DType::kFloat32), Access::kRead, 10);
    touch(op, target, Access::kWrite, 10);
    const MovementReport report = report_of_layers();
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].work.words_read, 10);
    EXPECT_DOUBLE_EQ(report.rows[0].work.bytes, 60);
}

TEST_F(MovementTest, ACpuTraceTakesTheTimesOfItsCalls) {
    begin();
    call("aten::gelu", dense0_, {.flop = 8, .words_read = 8, .words_written = 8});
    const MovementReport report = report_of_layers();
    EXPECT_FALSE(report.has_device_times);
    EXPECT_EQ(report.rows[0].work.time_ns, 100);
}

TEST_F(MovementTest, ADamagedTraceWithParentsAfterTheirCallsIsRead) {
    begin();
    const CostOfCall cost{.flop = 8, .words_read = 8, .words_written = 8};
    const Id<Op> first = call("aten::mul", dense0_, cost);
    const Id<Op> second = call("aten::add", dense0_, cost);
    put_into(first, second);
    put_into(second, first);
    const Trace trace = b.finish();
    EXPECT_EQ(movement_of(trace, MovementScope::kAll).rows.size(), 1U);
    EXPECT_EQ(movement_of(Trace(), MovementScope::kAll).rows.size(), 0U);
}

TEST_F(MovementTest, ClassesHoldTheSharesOfFlopAndTime) {
    begin();
    launch(
        call("aten::bmm", dense0_,
             {.flop = 90, .words_read = 2, .words_written = 1, .op_class = OpClass::kContraction}),
        60);
    launch(call("aten::mul", dense0_, {.flop = 10, .words_read = 20, .words_written = 10}), 40);
    const auto shares = class_shares(report_of_layers());
    ASSERT_EQ(shares.size(), 2U);
    EXPECT_EQ(shares[0].op_class, OpClass::kContraction);
    EXPECT_DOUBLE_EQ(shares[0].flop, 0.9);
    EXPECT_DOUBLE_EQ(*shares[0].time, 0.6);
}

TEST(MovementRates, MueIsTheTimeThatTheBytesNeedOfTheTimeTaken) {
    const DevicePeaks peaks{.name = "card", .flop_per_s = 100e9, .bytes_per_s = 10e9};
    MovementWork work;
    work.flop = 100;
    work.words_read = 100;
    work.words_written = 100;
    work.bytes = 800;  // 80 ns at the peak; the arithmetic needs 1 ns
    work.time_ns = 160;
    const MovementRates rates = rates_of(work, peaks);
    EXPECT_DOUBLE_EQ(*rates.flop_per_word, 0.5);
    EXPECT_DOUBLE_EQ(*rates.flop_per_byte, 0.125);
    EXPECT_DOUBLE_EQ(*rates.bytes_per_s, 5e9);
    EXPECT_DOUBLE_EQ(*rates.mue, 0.5);
    EXPECT_DOUBLE_EQ(*rates.memory_limit_ns, 80);
    EXPECT_DOUBLE_EQ(*rates.compute_limit_ns, 1);
    EXPECT_NEAR(*rates.peak_share, 1.0 / 160, 1e-12);
    EXPECT_TRUE(rates.is_memory_bound().value_or(false));
}

TEST(MovementRates, WithoutPeaksOrTimesColumnsAreEmpty) {
    MovementWork work;
    work.flop = 100;
    work.words_read = 100;
    work.bytes = 400;
    const MovementRates none = rates_of(work, {});
    EXPECT_TRUE(none.flop_per_word.has_value());
    EXPECT_FALSE(none.flop_per_s || none.peak_share || none.mue || none.is_memory_bound());
    work.time_ns = 10;
    const DevicePeaks peaks{.name = "card", .flop_per_s = 1e9, .bytes_per_s = 1e9};
    EXPECT_TRUE(rates_of(work, peaks).mue.has_value());
    EXPECT_FALSE(rates_of(work, peaks, false).mue.has_value());
    // A card without a peak for the precision: its products may wait for either.
    const DevicePeaks no_compute{.name = "card", .bytes_per_s = 1e9};
    EXPECT_FALSE(rates_of(work, no_compute).is_memory_bound().has_value());
    work.flop = 0;
    EXPECT_TRUE(rates_of(work, no_compute).is_memory_bound().value_or(false));
}

TEST_F(MovementTest, MemoryBoundOpsTakeAShareOfTheTime) {
    begin();
    launch(call("aten::bmm", dense0_, {.flop = 1000, .words_read = 1, .words_written = 1}), 30);
    launch(call("aten::mul", dense0_, {.flop = 1, .words_read = 100, .words_written = 100}), 60);
    launch(b.op("aten::arange", dense0_), 10);
    const MovementReport report = report_of_layers();
    const DevicePeaks peaks{.name = "card", .flop_per_s = 10e9, .bytes_per_s = 1e9};
    EXPECT_DOUBLE_EQ(*memory_bound_share(report, peaks), 60.0 / 90);
    EXPECT_FALSE(memory_bound_share(report, {}).has_value());
}

TEST_F(MovementTest, TheFlowOfALayerFollowsItsTensors) {
    begin();
    const CostOfCall cost{.flop = 8, .words_read = 8, .words_written = 8};
    const Id<Op> writer = call("aten::bmm", dense1_, cost);
    const Id<Op> in_place = call("aten::mul_", dense1_, cost);
    const Id<Op> reader = call("aten::gelu", dense1_, cost);
    call("aten::gelu", dense0_, cost);  // another layer
    const Id<Tensor> scores = tensor("scores", DType::kFloat32);
    touch(writer, scores, Access::kWrite, 8);
    touch(in_place, scores, Access::kRead, 8);
    touch(in_place, scores, Access::kWrite, 8);
    touch(reader, scores, Access::kRead, 8);
    const Trace trace = b.finish();
    const MovementFlow flow = movement_flow(trace);
    EXPECT_EQ(flow.layer, 1);
    ASSERT_EQ(flow.nodes.size(), 3U);
    ASSERT_EQ(flow.edges.size(), 2U);
    EXPECT_EQ(flow.edges[0].from, 0U);
    EXPECT_EQ(flow.edges[0].to, 1U);
    EXPECT_EQ(flow.edges[0].words, 8);
    EXPECT_EQ(flow.edges[0].tensor, "scores");
    EXPECT_EQ(flow.edges[1].from, 1U);
    EXPECT_EQ(flow.edges[1].to, 2U);
}

/// A checkpoint runs the forward of its layer a second time, inside its node in backward.
TEST_F(MovementTest, WhatACheckpointRunsAgainIsToldFromItsBackward) {
    begin();
    const CostOfCall cost{.flop = 8, .words_read = 8, .words_written = 8};
    const Id<Op> checkpoint = call("tempo::checkpoint", dense1_, {});
    const Id<Op> forward = call("aten::addmm", dense1_, cost);
    put_into(forward, checkpoint);
    b.begin_phase(PhaseKind::kBackward);
    const auto in_backward = [&](std::string_view name, Id<Op> parent, Id<Op> of,
                                 const CostOfCall& of_call) {
        const Id<Op> op = call(name, dense1_, of_call);
        put_into(op, parent);
        b.trace().ops.set<&Op::forward>(op, of);
        return op;
    };
    const Id<Op> node = in_backward("torch::autograd::CppNode<models::ops::CheckpointFunction>", {},
                                    checkpoint, {});
    const Id<Op> again = in_backward("aten::addmm", node, checkpoint, cost);
    const Id<Op> inner = in_backward("autograd::AddmmBackward0", node, again, {});
    const Id<Op> backward = in_backward("aten::mm", inner, again, cost);
    const Trace trace = b.finish();
    EXPECT_FALSE(runs_again(trace, forward));
    EXPECT_FALSE(runs_again(trace, node));
    EXPECT_TRUE(runs_again(trace, again));
    EXPECT_FALSE(runs_again(trace, inner));
    EXPECT_FALSE(runs_again(trace, backward));
    const MovementFlow flow = movement_flow(trace);
    ASSERT_EQ(flow.nodes.size(), 3U);
    EXPECT_FALSE(flow.nodes[0].runs_again);
    EXPECT_TRUE(flow.nodes[1].runs_again);
    EXPECT_FALSE(flow.nodes[2].runs_again);
}

}  // namespace
}  // namespace profiler
