#include "profiler/layouts/encoder_ops.h"
#include "profiler/layouts/layout_plan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace {

using namespace profiler;

constexpr LayoutSizes kSmall{
    .batch_size = 2, .seq_len = 5, .hidden_size = 12, .num_heads = 3, .intermediate_size = 14};

const LayoutTensor& tensor_of(const LayoutGraph& graph, const std::string& name) {
    return *std::find_if(graph.tensors.begin(), graph.tensors.end(),
                         [&](const LayoutTensor& tensor) { return tensor.name == name; });
}

TEST(EncoderOps, AreTheGemmsOfSubstation) {
    int forward = 0, backward = 0;
    for (const EncoderOp& op : encoder_layer().ops) {
        if (op.kernel == LayoutKernel::kGemm) ++(op.is_backward ? backward : forward);
    }
    EXPECT_EQ(forward, 6);
    EXPECT_EQ(backward, 12);
}

/// 335.007 Gflop of contractions for BERT-large at batch 8 and 512 tokens: Ivanov et al., Table 1.
TEST(EncoderOps, HaveTheContractionsOfThePaper) {
    const DimensionSizes sizes = dimension_sizes({.batch_size = 8, .seq_len = 512});
    const LayoutGraph graph = make_layout_graph({.batch_size = 8, .seq_len = 512});
    double flop = 0;
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        const LayoutOp& op = graph.ops[i];
        if (op.op_class != OpClass::kContraction) continue;
        const LayoutConfiguration& first = op.configurations.front();
        const auto order = [&](std::size_t place) {
            return graph.tensors[op.tensors[place]].orders[first.orders[place]];
        };
        const std::string a = order(0), b = order(1), c = order(2);
        const GemmForm form = gemm_forms({a, b, c}, sizes).front();
        flop += 2.0 * static_cast<double>(form.batch * form.m) * static_cast<double>(form.n) *
                static_cast<double>(form.k);
    }
    EXPECT_NEAR(flop / 1e9, 335.007, 0.001);
}

TEST(EncoderOps, ReadOnlyWhatWasWrittenBefore) {
    std::vector<std::string> written{"input", "d_output"};
    for (const LayoutTensor& tensor : encoder_layer().tensors) {
        if (tensor.role == LayoutRole::kWeight) written.push_back(tensor.name);
    }
    for (const EncoderOp& op : encoder_layer().ops) {
        for (const std::string& name : op.reads) {
            EXPECT_NE(std::find(written.begin(), written.end(), name), written.end())
                << op.name << " reads " << name;
        }
        written.insert(written.end(), op.writes.begin(), op.writes.end());
    }
}

TEST(LayoutGraphOfTheEncoder, HasEveryOrderThatAGemmCanUse) {
    const LayoutGraph graph = make_layout_graph(kSmall);
    EXPECT_EQ(tensor_of(graph, "input").orders.size(), 6u);
    EXPECT_EQ(tensor_of(graph, "query").orders.size(), 8u);
    EXPECT_EQ(tensor_of(graph, "projected").orders.size(), 60u);
    for (const LayoutOp& op : graph.ops) {
        EXPECT_FALSE(op.configurations.empty()) << op.name;
        EXPECT_EQ(op.tensors.size(), op.configurations.front().orders.size()) << op.name;
    }
}

TEST(LayoutGraphOfTheEncoder, HoldsTorchsOrders) {
    LayoutGraph graph = make_layout_graph(kSmall);
    for (LayoutTensor& tensor : graph.tensors) {
        const std::size_t count = tensor.orders.size();
        if (tensor.role != LayoutRole::kWeight) tensor.copy_ns.assign(count * count, 1);
    }
    for (LayoutOp& op : graph.ops) {
        for (LayoutConfiguration& one : op.configurations) one.time_ns = 1;
    }
    const auto plan = plan_layouts(graph, {.allowed = default_orders()});
    ASSERT_TRUE(plan) << plan.error().message;
    // The context and its gradient are copied: heads are merged and split.
    EXPECT_EQ(plan->copies_ns(), 2);
    EXPECT_EQ(plan->time_ns, static_cast<double>(graph.ops.size()) + 2);

    const LayoutRun run = run_of(graph, *plan);
    ASSERT_EQ(run.size(), graph.ops.size());
    const auto step = std::find_if(run.begin(), run.end(), [](const LayoutRunStep& one) {
        return encoder_layer().ops[one.op].name == "context";
    });
    const LayoutRunCopy merged{"context", "bhjp", "bjhp"};
    EXPECT_EQ(step->after, std::vector{merged}) << "where the next op reads it";
    const auto read = layout_run_from_json(to_json(run));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, run);
}

TEST(LayoutRun, IsRefusedWhereItIsNotOfTheLayer) {
    const nlohmann::json good{
        {{"op", 0},
         {"orders", {"bji", "chpi", "chpbj"}},
         {"before", nlohmann::json::array()},
         {"after", {{{"tensor", "query"}, {"from", "bhjp"}, {"to", "hbjp"}}}}}};
    ASSERT_TRUE(layout_run_from_json(good)) << layout_run_from_json(good).error().message;
    const auto refuses = [&](const auto& damage) {
        nlohmann::json bad = good;
        damage(bad[0]);
        EXPECT_FALSE(layout_run_from_json(bad)) << bad.dump();
    };
    refuses([](auto& step) { step["op"] = 99; });
    refuses([](auto& step) { step["orders"][0] = "bjj"; });
    refuses([](auto& step) { step["orders"] = {"bji"}; });
    refuses([](auto& step) { step["after"][0]["to"] = "hbjk"; });
    refuses([](auto& step) { step["after"][0]["tensor"] = "nothing"; });
    refuses([](auto& step) { step.erase("before"); });
}

}  // namespace
