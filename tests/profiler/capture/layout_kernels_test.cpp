// Every configuration of every op computes the same values.
//
// Method: GEMMs are compared with an einsum of the same tensors, and every other op with its own
// configuration in torch's orders. The tensors have odd sizes. fp32 sums in another order differ by
// rounding only.

#include "profiler/capture/layout_kernels.h"
#include "profiler/capture/measure_layouts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/einsum.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace profiler {
namespace {

constexpr LayoutSizes kSmall{
    .batch_size = 2, .seq_len = 5, .hidden_size = 12, .num_heads = 3, .intermediate_size = 14};
constexpr double kTolerance = 2e-5;

const at::Device kCpu(at::kCPU);

std::vector<std::string> orders_of(const LayoutGraph& graph, const LayoutOp& op,
                                   const LayoutConfiguration& configuration) {
    std::vector<std::string> orders;
    for (std::size_t i = 0; i < op.tensors.size(); ++i) {
        orders.push_back(graph.tensors[op.tensors[i]].orders[configuration.orders[i]]);
    }
    return orders;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
}

class LayoutKernels : public testing::TestWithParam<std::size_t> {
protected:
    const EncoderOp& op() const { return encoder_layer().ops[GetParam()]; }
    const LayoutGraph graph_ = make_layout_graph(kSmall);
    const LayoutOp& row() const { return graph_.ops[GetParam()]; }
};

at::Tensor product(const EncoderOp& op, LayoutBuffers& buffers) {
    const std::string &a = buffers.dimensions(op.reads[0]), &b = buffers.dimensions(op.reads[1]),
                      &c = buffers.dimensions(op.writes[0]);
    return at::einsum(a + "," + b + "->" + c,
                      {buffers.logical(op.reads[0], a), buffers.logical(op.reads[1], b)});
}

TEST_P(LayoutKernels, ComputeTheSameInEveryConfiguration) {
    ASSERT_FALSE(row().configurations.empty());
    at::Tensor expected;
    for (const LayoutConfiguration& configuration : row().configurations) {
        const auto orders = orders_of(graph_, row(), configuration);
        LayoutBuffers buffers(kSmall, kCpu);
        const auto check = [&](const at::Tensor& value, const std::string& what) {
            EXPECT_LE(largest_difference(value, expected), kTolerance)
                << op().name << " " << testing::PrintToString(orders) << " " << what;
        };
        if (op().kernel != LayoutKernel::kGemm) {
            layout_call(op(), orders, buffers)();
            const at::Tensor value = buffers.logical(op().writes[0], orders.back());
            if (!expected.defined()) expected = value.clone();
            check(value, "");
            continue;
        }
        if (!expected.defined()) expected = product(op(), buffers);
        for (const GemmForm& form :
             gemm_forms({orders[0], orders[1], orders[2]}, buffers.sizes())) {
            for (const GemmCalls calls : gemm_calls(form, /*is_cpu=*/true)) {
                const at::Tensor c = buffers.memory(op().writes[0], orders[2]);
                c.fill_(-1);
                gemm_call(form, calls, buffers.memory(op().reads[0], orders[0]),
                          buffers.memory(op().reads[1], orders[1]), c)();
                check(buffers.logical(op().writes[0], orders[2]),
                      std::to_string(form.batch) + " matrices");
            }
        }
    }
}

std::string op_name(const testing::TestParamInfo<std::size_t>& info) {
    std::string name = encoder_layer().ops[info.param].name;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, LayoutKernels,
                         testing::Range(std::size_t{0}, encoder_layer().ops.size()), op_name);

/// The reference of the test above is one of its own configurations: the native kernel here.
TEST(LayoutKernels, NormIsLayerNormOfTheDroppedBranchAndTheResidual) {
    LayoutBuffers buffers(kSmall, kCpu);
    const EncoderOp& op = encoder_layer().ops[8];
    ASSERT_EQ(op.name, "norm 1");
    const std::vector<std::string> orders{"bji", "bji", "bji"};
    layout_call(op, orders, buffers)();
    const at::Tensor sum = buffers.beside("normed", "sum", "bji");
    const at::Tensor branch = buffers.logical("attention", "bji") + buffers.parameter("bias", {12});
    EXPECT_LE(largest_difference(sum, buffers.logical("input", "bji") +
                                          branch * buffers.beside("normed", "mask", "bji")),
              kTolerance);
    const at::Tensor centred = sum - sum.mean(-1, true);
    const at::Tensor expected =
        centred / (centred * centred).mean(-1, true).sqrt() * buffers.parameter("gamma", {12}) +
        buffers.parameter("beta", {12});
    EXPECT_LE(largest_difference(buffers.logical("normed", "bji"), expected), kTolerance);
}

TEST(MeasureLayouts, GivesEveryConfigurationAndEveryCopyATime) {
    std::vector<std::string> stages;
    const CaptureCallbacks callbacks{
        .progress = [&](std::string_view stage, int64_t, int64_t) { stages.emplace_back(stage); }};
    const LayoutGraph graph = measure_layouts(kCpu, {.sizes = kSmall, .num_rounds = 1}, callbacks);
    for (const LayoutOp& op : graph.ops) {
        for (const LayoutConfiguration& one : op.configurations) {
            EXPECT_GT(one.time_ns, 0) << op.name;
            EXPECT_LT(one.time_ns, 1e9) << op.name;
        }
    }
    for (const LayoutTensor& tensor : graph.tensors) {
        const bool has_copies = tensor.role != LayoutRole::kWeight && tensor.dimensions.size() <= 4;
        EXPECT_EQ(tensor.copy_time_ns(0, 1) > 0, has_copies) << tensor.name;
    }
    EXPECT_EQ(stages.size(), graph.ops.size() + graph.tensors.size());
}

/// In torch's orders: with the copies of the context and its gradient.
TEST(MeasureLayouts, RunsWholeLayersInTurn) {
    const LayoutGraph graph = measure_layouts(kCpu, {.sizes = kSmall, .num_rounds = 1}, {});
    const auto plan = plan_layouts(graph);
    const auto torch = plan_layouts(graph, {.allowed = default_orders()});
    ASSERT_TRUE(plan && torch);
    std::size_t num_copies = 0;
    for (const LayoutRunStep& step : run_of(graph, *torch)) {
        num_copies += step.before.size() + step.after.size();
    }
    EXPECT_EQ(num_copies, 2u);
    const auto times = time_layout_runs(kCpu, {.sizes = kSmall, .num_rounds = 3},
                                        {run_of(graph, *plan), run_of(graph, *torch)}, {});
    ASSERT_EQ(times.size(), 2u);
    for (const double ns : times) EXPECT_GT(ns, 0);
    LayoutRun impossible = run_of(graph, *torch);
    for (LayoutRunStep& step : impossible) {
        if (encoder_layer().ops[step.op].name == "scores") step.orders[0] = "bjhp";
    }
    EXPECT_THROW(time_layout_runs(kCpu, {.sizes = kSmall, .num_rounds = 1}, {impossible}, {}),
                 std::invalid_argument);
}

TEST(MeasureLayouts, EndsWhenTheUserCancels) {
    int asked = 0;
    const CaptureCallbacks callbacks{.cancelled = [&] { return ++asked > 3; }};
    EXPECT_THROW(measure_layouts(kCpu, {.sizes = kSmall, .num_rounds = 1}, callbacks), Cancelled);
}

}  // namespace
}  // namespace profiler
