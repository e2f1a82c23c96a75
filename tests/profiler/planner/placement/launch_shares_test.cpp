#include "profiler/planner/placement/launch_shares.h"

#include "profiler/planner/data/planner_data.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace profiler;

struct LaunchSpec {
    std::string_view kernel;
    Id<Op> op;
    int64_t blocks = 1;
    int64_t threads = 1;
};

class LaunchSharesOf : public testing::Test {
protected:
    static KernelModel a100() {
        const PlannerData& data = built_in_planner_data();
        return KernelModel(**find_gpu(data.gpus, "a100-80gb"),
                           **find_environment(data.environments, "torch-2.11"), data.calibration);
    }

    Id<Op> call(std::string_view name, Id<Op> parent = {}) {
        const Id<Op> op = builder_.op(name);
        builder_.trace().ops.set<&Op::parent>(op, parent);
        return op;
    }
    Id<Kernel> launch(const LaunchSpec& spec) {
        return builder_.trace().kernels.append({.name = builder_.text(spec.kernel),
                                                .op = spec.op,
                                                .grid_x = spec.blocks,
                                                .grid_y = 1,
                                                .grid_z = 1,
                                                .block_x = spec.threads,
                                                .block_y = 1,
                                                .block_z = 1});
    }
    static OpWork moving(Id<Op> op, int64_t bytes, KernelKind kernel = KernelKind::kElementWise) {
        return {.op = op, .work = {.kernel = kernel, .moved_bytes = bytes}};
    }
    std::vector<double> weights(const std::vector<OpWork>& works, Id<Op> op,
                                const std::vector<Id<Kernel>>& launches) {
        return LaunchShares(builder_.trace(), model_, works).weights_of(op, launches);
    }

    ::tests::TraceBuilder builder_;
    const KernelModel model_ = a100();
};

constexpr int64_t kGigabyte = 1'000'000'000;

TEST_F(LaunchSharesOf, ACountedCallInsideGetsTheTimeOfItsOwnBytes) {
    const Id<Op> softmax = call("aten::_softmax_backward_data");
    const Id<Op> product = call("aten::mul", softmax);
    const std::vector<Id<Kernel>> launches = {launch({"vectorized_elementwise_kernel", product}),
                                              launch({"softmax_warp_backward", softmax})};
    const auto shares = weights({moving(softmax, 3 * kGigabyte), moving(product, 2 * kGigabyte)},
                                softmax, launches);
    EXPECT_NEAR(shares[0] / shares[1], 2.0 / 3, 0.01);
}

TEST_F(LaunchSharesOf, KernelsOfOneCallShareByTheirWordsWhereTheyAreKnown) {
    const Id<Op> norm = call("aten::native_layer_norm_backward");
    // Few threads that walk down columns move almost as much as many.
    const std::vector<Id<Kernel>> launches = {
        launch({"layer_norm_grad_input_kernel_vectorized", norm, 4096, 128}),
        launch({"GammaBetaBackwardCUDAKernelTemplate", norm, 32, 1024})};
    const auto shares = weights({moving(norm, kGigabyte)}, norm, launches);
    EXPECT_DOUBLE_EQ(shares[0] / shares[1], 1.5);
}

TEST_F(LaunchSharesOf, OtherKernelsShareByTheirThreads) {
    const Id<Op> update = call("aten::_foreach_mul_");
    const std::vector<Id<Kernel>> launches = {launch({"multi_tensor_apply", update, 320, 512}),
                                              launch({"multi_tensor_apply", update, 32, 512})};
    const auto shares = weights({moving(update, kGigabyte)}, update, launches);
    EXPECT_DOUBLE_EQ(shares[0] / shares[1], 10);
}

TEST_F(LaunchSharesOf, WhatMultipliesGetsMostOfAContraction) {
    const Id<Op> attention = call("aten::_scaled_dot_product_flash_attention_backward");
    OpWork work{.op = attention,
                .op_class = OpClass::kContraction,
                .work = {.kernel = KernelKind::kFlashAttention,
                         .type = MatmulType::kBf16,
                         .flop = 40'000'000'000,
                         .moved_bytes = 100'000'000}};
    const std::vector<Id<Kernel>> launches = {
        launch({"flash_bwd_dot_do_o_kernel", attention, 512, 256}),
        launch({"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", attention, 512, 256}),
        launch({"flash_bwd_convert_dq_kernel", attention, 512, 256})};
    const auto shares = weights({work}, attention, launches);
    EXPECT_GT(shares[1] / (shares[0] + shares[1] + shares[2]), 0.9);
    EXPECT_DOUBLE_EQ(shares[0], shares[2]);
    EXPECT_GT(shares[0], 0);
}

TEST_F(LaunchSharesOf, AKernelOfNoCountedCallTakesTheTimeOfALaunch) {
    const Id<Op> outer = call("aten::to");
    const auto shares = weights({}, outer, {launch({"copy", outer}), launch({"copy", outer})});
    EXPECT_DOUBLE_EQ(shares[0], model_.launch_ns());
    EXPECT_DOUBLE_EQ(shares[1], model_.launch_ns());
}

TEST_F(LaunchSharesOf, GridsOfADamagedFileGiveWeightsThatCanBeAddedUp) {
    const Id<Op> op = call("aten::mul");
    const auto shares = weights({moving(op, 0)}, op,
                                {launch({"a", op, -5, 0}), launch({"b", op, int64_t{1} << 62, 9})});
    for (const double share : shares) {
        EXPECT_TRUE(std::isfinite(share));
        EXPECT_GE(share, 0);
    }
    EXPECT_GT(shares[0] + shares[1], 0);
}

}  // namespace
