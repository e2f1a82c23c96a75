#include "profiler/planner/step/step_work.h"

#include "profiler/planner/step/step_memory.h"
#include "tests/profiler/planner/toy_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(AffineStep, EqualsATraceAtAThirdBatch) {
    const auto affine = AffineStep::fit(work_at(2), work_at(4));
    ASSERT_TRUE(affine) << affine.error().message;
    for (const int64_t batch_size : {1, 3, 7, 50}) {
        const StepWork predicted = affine->at(batch_size);
        StepWork traced = work_at(batch_size);
        ASSERT_EQ(predicted.allocations.size(), traced.allocations.size());
        for (std::size_t i = 0; i < traced.allocations.size(); ++i) {
            EXPECT_EQ(predicted.allocations[i].size_bytes, traced.allocations[i].size_bytes);
        }
        const StepMemory a = simulate_step(predicted, {}, std::nullopt);
        const StepMemory b = simulate_step(traced, {}, std::nullopt);
        EXPECT_EQ(a.peak_allocated_bytes, b.peak_allocated_bytes);
        EXPECT_EQ(a.peak_reserved_bytes, b.peak_reserved_bytes);
        merge_equal_ops(traced);
        ASSERT_EQ(predicted.ops.size(), traced.ops.size());
        for (std::size_t i = 0; i < traced.ops.size(); ++i) {
            EXPECT_EQ(predicted.ops[i].work, traced.ops[i].work) << batch_size << ", op " << i;
            EXPECT_EQ(predicted.ops[i].count, traced.ops[i].count);
        }
        EXPECT_EQ(predicted.model_flop, traced.model_flop);
    }
}

TEST(AffineStep, MergesEqualLayers) {
    const auto affine = AffineStep::fit(work_at(2), work_at(4));
    EXPECT_LT(affine->ops_at(2).ops.size(), work_at(2).ops.size());
    int64_t count = 0;
    for (const StepOp& op : affine->ops_at(2).ops) count += op.count;
    EXPECT_EQ(count, static_cast<int64_t>(work_at(2).ops.size()));
}

TEST(StepWork, OrdersFreesBetweenAllocations) {
    using enum AllocatorRequestKind;
    StepWork step;
    step.allocations.resize(4);
    step.requests = {{kAlloc, 0}, {kAlloc, 1}, {kFree, 1}, {kFree, 0},
                     {kAlloc, 2}, {kAlloc, 3}, {kFree, 3}, {kFree, 2}};
    step.first_request = 7;  // the last step begins between the two last frees
    order_frees(step);
    std::vector<uint32_t> order;
    for (const StepRequest& request : step.requests) order.push_back(request.allocation);
    EXPECT_THAT(order, testing::ElementsAre(0, 1, 0, 1, 2, 3, 3, 2));
}

TEST(AffineStep, RefusesSequencesThatDiffer) {
    const auto affine = AffineStep::fit(work_at(2), work_at(4, {.extra_from_batch = 3}));
    ASSERT_FALSE(affine);
    EXPECT_THAT(affine.error().message, testing::HasSubstr("different sequences"));
    EXPECT_FALSE(AffineStep::fit(work_at(4), work_at(2)));
}

}  // namespace
