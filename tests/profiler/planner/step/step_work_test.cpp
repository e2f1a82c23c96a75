#include "profiler/planner/step/step_work.h"

#include "profiler/analysis/step/ledger.h"
#include "profiler/planner/step/step_memory.h"
#include "tests/profiler/planner/toy_step.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using tests::make_toy_step;
using tests::toy_workload;

StepWork work_at(int64_t batch_size, const tests::ToyOptions& options = {}) {
    return step_work_of(make_toy_step(toy_workload(batch_size), options)).value();
}

TEST(StepWork, HoldsTheProductsOfAStepOnce) {
    const StepWork step = work_at(2);
    int64_t products = 0;
    for (const StepOp& op : step.ops) products += op.work.kernel == KernelKind::kGemm ? 1 : 0;
    EXPECT_EQ(products, 2 * 6);  // the ops that call them are not counted again
    // 3 x forward: two layers of two products, 2 · (B S) · H · I each.
    EXPECT_EQ(step.model_flop, 3 * 2 * 2 * 2 * (2 * 32) * 64 * 256);
    EXPECT_TRUE(step.has_shapes);
    EXPECT_EQ(step.ops.front().work.shape, (GemmShape{1, 2 * 32, 256, 64}));
    EXPECT_EQ(step.ops.front().work.moved_bytes, 4 * (64 * 64 + 64 * 256 + 64 * 256));
}

/// The gradient of softmax and dropout overwrites its first argument.
TEST(StepWork, AnOpThatReturnsNothingWritesItsFirstArgument) {
    ::tests::TraceBuilder b(toy_workload(2));
    b.begin_step(PhaseKind::kBackward);
    const Id<Op> op = b.op("tempo::softmax_dropout_backward_");
    auto& trace = b.trace();
    const auto read = [&](DType dtype) {
        const Id<Tensor> tensor = trace.tensors.append({.dtype = dtype});
        trace.op_tensors.append(
            {.op = op, .tensor = tensor, .access = Access::kRead, .words = 100});
    };
    for (const DType dtype : {DType::kFloat16, DType::kFloat16, DType::kBool}) read(dtype);
    trace.ops.set<&Op::read_words>(op, 300);
    trace.ops.set<&Op::written_words>(op, 100);
    trace.ops.set<&Op::op_class>(op, OpClass::kNormalization);
    const Trace done = b.finish();
    const StepOps ops = ops_of_step(done, Id<Step>(0), defaults_of(toy_workload(2)));
    ASSERT_EQ(ops.ops.size(), 1U);
    EXPECT_EQ(ops.ops[0].work.moved_bytes, 200 + 200 + 100 + 200);
    EXPECT_EQ(ops.ops[0].work.kernel, KernelKind::kSoftmaxBackward);
    EXPECT_TRUE(ops.ops[0].work.is_own);
}

TEST(StepWork, KnowsTheParameters) {
    const Parameters p = work_at(2).parameters;
    EXPECT_EQ(p.num_tensors, 4);
    EXPECT_EQ(p.num_elements, 4 * 64 * 256);
    EXPECT_EQ(p.size_bytes, 4 * 64 * 256 * 4);
    EXPECT_EQ(p.largest_tensor_bytes, 64 * 256 * 4);
    EXPECT_EQ(p.largest_layer_bytes, 2 * 64 * 256 * 4);
}

TEST(StepWork, LooksAtTheLastStepsOps) {
    EXPECT_EQ(work_at(2, {.num_steps = 3}).ops.size(), work_at(2).ops.size());
}

TEST(StepWork, WithoutTensorsTakesWordsOfThePrecision) {
    const StepWork step = work_at(2, {.has_op_tensors = false});
    EXPECT_FALSE(step.has_shapes);
    EXPECT_EQ(step.ops.front().work.moved_bytes, 4 * (64 * 64 + 64 * 256 + 64 * 256));
    EXPECT_EQ(step.ops.front().work.shape, (GemmShape{.k = 64}));
}

TEST(StepWork, NeedsARecordedStep) {
    EXPECT_FALSE(step_work_of(make_toy_step(toy_workload(), {.num_steps = 0})));
    EXPECT_FALSE(step_work_of(Trace{}));
}

TEST(AffineRequests, EqualATraceAtAThirdBatch) {
    const auto requests = AffineRequests::fit(work_at(2), work_at(50));
    ASSERT_TRUE(requests) << requests.error().message;
    for (const int64_t batch_size : {3, 7, 49, 50}) {
        const StepRequests predicted = requests->at(batch_size);
        const StepWork traced = work_at(batch_size);
        ASSERT_EQ(predicted.allocations.size(), traced.allocations.size());
        for (std::size_t i = 0; i < traced.allocations.size(); ++i) {
            EXPECT_EQ(predicted.allocations[i].size_bytes, traced.allocations[i].size_bytes);
        }
        const StepMemory a = simulate_step(predicted, {}, std::nullopt);
        const StepMemory b = simulate_step(traced, {}, std::nullopt);
        EXPECT_EQ(a.peak_allocated_bytes, b.peak_allocated_bytes);
        EXPECT_EQ(a.peak_reserved_bytes, b.peak_reserved_bytes);
        EXPECT_EQ(predicted.saved_bytes, traced.saved_bytes);
    }
}

TEST(AffineRequests, SavedBytesAreTheLedgersWhereBothBatchesHaveThem) {
    StepWork small = work_at(2);
    EXPECT_GT(small.saved_bytes.value(), 0);
    EXPECT_EQ(small.saved_bytes, build_ledger(make_toy_step(toy_workload(2))).total_bytes);
    small.saved_bytes.reset();
    EXPECT_EQ(AffineRequests::fit(small, work_at(8)).value().at(4).saved_bytes, std::nullopt);
}

TEST(AffineRequests, ScratchThatOnlyTheLargerBatchTakesGrowsWithTheBatch) {
    const tests::ToyOptions options{.extra_from_batch = 13};
    const StepWork large = work_at(32, options);
    const auto requests = AffineRequests::fit(work_at(4, options), large);
    ASSERT_TRUE(requests) << requests.error().message;
    const StepRequests half = requests->at(16);
    ASSERT_EQ(half.allocations.size(), large.allocations.size());
    const StepWork plain = work_at(32);
    std::size_t extra = 0;
    while (large.allocations[extra].size_bytes == plain.allocations[extra].size_bytes) ++extra;
    EXPECT_EQ(half.allocations[extra].size_bytes * 2, large.allocations[extra].size_bytes);
}

TEST(AffineRequests, NeedAGrowingBatch) {
    EXPECT_FALSE(AffineRequests::fit(work_at(4), work_at(4)));
    EXPECT_FALSE(AffineOps::fit(work_at(4), work_at(2)));
}

TEST(AffineRequests, KnowWhatGrowsFasterThanTheBatch) {
    const auto affine = AffineRequests::fit(work_at(2), work_at(4));
    EXPECT_EQ(affine.value().not_affine(), std::nullopt);
    StepWork large = work_at(4);
    const auto made_by_op =
        std::find_if(large.allocations.begin(), large.allocations.end(),
                     [](const StepAllocation& allocation) { return allocation.op != 0; });
    ASSERT_NE(made_by_op, large.allocations.end());
    made_by_op->size_bytes += 4 << 20;
    const auto place = static_cast<std::size_t>(made_by_op - large.allocations.begin());
    EXPECT_EQ(AffineRequests::fit(work_at(2), large).value().not_affine(), place);
}

TEST(AffineOps, EqualATraceAtAThirdBatch) {
    const auto ops = AffineOps::fit(work_at(2), work_at(4));
    ASSERT_TRUE(ops) << ops.error().message;
    for (const int64_t batch_size : {1, 3, 7, 50}) {
        const StepWork predicted = ops->at(batch_size);
        StepWork traced = work_at(batch_size);
        merge_equal_ops(traced);
        ASSERT_EQ(predicted.ops.size(), traced.ops.size());
        for (std::size_t i = 0; i < traced.ops.size(); ++i) {
            EXPECT_EQ(predicted.ops[i].work, traced.ops[i].work) << batch_size << ", op " << i;
            EXPECT_EQ(predicted.ops[i].count, traced.ops[i].count);
        }
        EXPECT_EQ(predicted.model_flop, traced.model_flop);
    }
}

TEST(AffineOps, MergesEqualLayers) {
    const auto affine = AffineOps::fit(work_at(2), work_at(4));
    EXPECT_LT(affine->at(2).ops.size(), work_at(2).ops.size());
    int64_t count = 0;
    for (const StepOp& op : affine->at(2).ops) count += op.count;
    EXPECT_EQ(count, static_cast<int64_t>(work_at(2).ops.size()));
}

TEST(StepWork, TheSecondStepDoesNotMakeWhatStays) {
    using enum AllocatorRequestKind;
    StepRequests step;
    // A weight; then a step with a workspace that stays and two tensors that do not.
    step.allocations = {{.size_bytes = 1, .category = Category::kParameter},
                        {.size_bytes = 2, .category = Category::kWorkspace, .in_last_step = true},
                        {.size_bytes = 3, .in_last_step = true},
                        {.size_bytes = 4, .in_last_step = true}};
    step.requests = {{kAlloc, 0}, {kAlloc, 1}, {kAlloc, 2}, {kAlloc, 3}, {kFree, 2}, {kFree, 3}};
    step.first_request = 1;
    step.is_first_step = true;
    repeat_first_step(step);
    std::vector<int64_t> bytes;
    for (std::size_t i = step.first_request; i < step.requests.size(); ++i) {
        const StepAllocation& allocation = step.allocations[step.requests[i].allocation];
        EXPECT_TRUE(allocation.in_last_step);
        bytes.push_back(allocation.size_bytes);
    }
    EXPECT_THAT(bytes, testing::ElementsAre(3, 4, 3, 4));
    EXPECT_EQ(step.first_request, 6U);
    EXPECT_FALSE(step.allocations[1].in_last_step || step.allocations[2].in_last_step);
    repeat_first_step(step);
    EXPECT_EQ(step.requests.size(), 10U) << "it is the second step now";
}

TEST(AffineRequests, WithoutOpsCannotTellAllocationsApart) {
    StepRequests small{.batch_size = 2};
    small.allocations.resize(1);
    StepRequests large{.batch_size = 4};
    large.allocations.resize(2);
    const auto requests = AffineRequests::fit(small, large);
    ASSERT_FALSE(requests);
    EXPECT_THAT(requests.error().message, testing::HasSubstr("different sequences"));
}

}  // namespace
