#include "profiler/layouts/layout_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

/// The search is compared with trying every combination of configurations on small random graphs,
/// and with graphs whose answer is plain.
namespace {

using namespace profiler;

LayoutTensor tensor(const std::string& name, std::size_t num_orders, double copy_ns,
                    LayoutRole role = LayoutRole::kOther) {
    LayoutTensor result{.name = name, .dimensions = "ab", .role = role};
    for (std::size_t i = 0; i < num_orders; ++i) result.orders.push_back("o" + std::to_string(i));
    if (copy_ns >= 0) result.copy_ns.assign(num_orders * num_orders, copy_ns);
    return result;
}

/// All combinations of orders; `time` of each.
LayoutOp op(const LayoutGraph& graph, const std::string& name, std::vector<std::size_t> tensors,
            std::size_t num_reads, const std::function<double(const std::vector<uint8_t>&)>& time) {
    LayoutOp result{.name = name, .tensors = std::move(tensors), .num_reads = num_reads};
    std::vector<uint8_t> orders(result.tensors.size(), 0);
    while (true) {
        result.configurations.push_back({orders, time(orders)});
        std::size_t place = 0;
        while (place < orders.size() &&
               ++orders[place] == graph.tensors[result.tensors[place]].orders.size()) {
            orders[place++] = 0;
        }
        if (place == orders.size()) return result;
    }
}

LayoutPath path_of(const LayoutGraph& graph, const PassLimits& limits) {
    const auto path = fastest_path(graph, {0, graph.ops.size()}, limits);
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : LayoutPath{};
}

/// x -> y -> z, where the fastest first op writes what the second op reads slowly.
LayoutGraph two_ops(double copy_ns) {
    LayoutGraph graph;
    graph.tensors = {tensor("x", 1, -1), tensor("y", 2, copy_ns), tensor("z", 1, -1)};
    graph.ops.push_back(
        op(graph, "first", {0, 1}, 1, [](const auto& orders) { return orders[1] == 0 ? 10 : 18; }));
    graph.ops.push_back(op(graph, "second", {1, 2}, 1,
                           [](const auto& orders) { return orders[0] == 0 ? 30 : 10; }));
    return graph;
}

TEST(LayoutSearch, TakesASlowerConfigurationThatMakesTheNextOpFaster) {
    const LayoutPath path = path_of(two_ops(50), PassLimits(3));
    EXPECT_EQ(path.time_ns, 28);
    EXPECT_EQ(path.orders, (std::vector<int>{0, 1, 0}));
}

TEST(LayoutSearch, CopiesWhereThatPays) {
    const LayoutPath path = path_of(two_ops(5), PassLimits(3));
    EXPECT_EQ(path.time_ns, 25);
    ASSERT_EQ(path.steps[1].copies.size(), 1u);
    EXPECT_EQ(path.steps[1].copies[0], (LayoutCopy{1, 0, 1, 5}));
    EXPECT_EQ(path.steps[1].total_ns(), 15);
}

TEST(LayoutSearch, KeepsWhatIsGivenRequiredAndAllowed) {
    PassLimits limits(3);
    limits.required[1] = 0;
    EXPECT_EQ(path_of(two_ops(50), limits).time_ns, 40);
    limits = PassLimits(3);
    limits.allowed[1] = {0};
    EXPECT_EQ(path_of(two_ops(5), limits).time_ns, 40);
    limits = PassLimits(3);
    limits.most_ns = 24;
    EXPECT_FALSE(fastest_path(two_ops(5), {0, 2}, limits));
}

/// A tensor that two later ops read waits on the residual path; the search must not forget it.
TEST(LayoutSearch, CarriesAResidualToItsEnd) {
    LayoutGraph graph;
    graph.tensors = {tensor("x", 2, 100), tensor("y", 2, 100), tensor("z", 1, -1)};
    graph.ops.push_back(
        op(graph, "branch", {0, 1}, 1, [](const auto& orders) { return orders[0] == 0 ? 1 : 3; }));
    graph.ops.push_back(
        op(graph, "add", {0, 1, 2}, 2, [](const auto& orders) { return orders[0] == 0 ? 10 : 1; }));
    EXPECT_EQ(path_of(graph, PassLimits(3)).time_ns, 4) << "x in the order that the sum likes";
    PassLimits limits(3);
    limits.given[0] = 0;
    EXPECT_EQ(path_of(graph, limits).time_ns, 11);
}

TEST(LayoutSearch, UsesACopyForEveryLaterReader) {
    LayoutGraph graph;
    graph.tensors = {tensor("x", 2, 5), tensor("y", 1, -1), tensor("z", 1, -1)};
    const auto likes_second = [](const auto& orders) { return orders[0] == 0 ? 20 : 1; };
    graph.ops.push_back(op(graph, "a", {0, 1}, 1, likes_second));
    graph.ops.push_back(op(graph, "b", {0, 2}, 1, likes_second));
    PassLimits limits(3);
    limits.given[0] = 0;
    EXPECT_EQ(path_of(graph, limits).time_ns, 7) << "one copy, not two";
}

TEST(LayoutSearch, SaysWhereNoPathLeadsOn) {
    LayoutGraph graph = two_ops(-1);
    std::erase_if(graph.ops[0].configurations, [](const auto& one) { return one.orders[1] == 1; });
    std::erase_if(graph.ops[1].configurations, [](const auto& one) { return one.orders[0] == 0; });
    const auto path = fastest_path(graph, {0, 2}, PassLimits(3));
    ASSERT_FALSE(path);
    EXPECT_NE(path.error().message.find("'second'"), std::string::npos);
}

/// The least time of all combinations of configurations, by recursion.
double least_time(const LayoutGraph& graph, std::size_t index, std::map<std::size_t, int> orders) {
    if (index == graph.ops.size()) return 0;
    const LayoutOp& row = graph.ops[index];
    double best = 1e18;
    for (const LayoutConfiguration& one : row.configurations) {
        auto after = orders;
        double time_ns = one.time_ns;
        std::vector<std::size_t> copied;
        for (std::size_t i = 0; i < row.tensors.size(); ++i) {
            const auto [has, is_new] = after.try_emplace(row.tensors[i], one.orders[i]);
            if (is_new || has->second == one.orders[i]) continue;
            time_ns += graph.tensors[row.tensors[i]].copy_time_ns(
                static_cast<std::size_t>(has->second), one.orders[i]);
            copied.push_back(i);
        }
        // Each copied tensor goes on in its old or in its new order.
        for (unsigned bits = 0; bits < (1U << copied.size()); ++bits) {
            auto next = after;
            for (std::size_t i = 0; i < copied.size(); ++i) {
                if ((bits >> i & 1U) != 0) next[row.tensors[copied[i]]] = one.orders[copied[i]];
            }
            best = std::min(best, time_ns + least_time(graph, index + 1, next));
        }
    }
    return best;
}

TEST(LayoutSearch, IsAsFastAsTheBestOfAllCombinations) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> time(1, 20);
    for (int trial = 0; trial < 40; ++trial) {
        LayoutGraph graph;
        for (int i = 0; i < 5; ++i) {
            graph.tensors.push_back(tensor("t" + std::to_string(i), 2, 0));
            for (double& ns : graph.tensors.back().copy_ns) ns = time(random) / 2;
        }
        const auto any = [&](const auto&) { return time(random); };
        graph.ops.push_back(op(graph, "a", {0, 1}, 1, any));
        graph.ops.push_back(op(graph, "b", {1, 2}, 1, any));
        graph.ops.push_back(op(graph, "c", {1, 2, 3}, 2, any));
        graph.ops.push_back(op(graph, "d", {0, 3, 4}, 2, any));
        const double expected = least_time(graph, 0, {});
        PassLimits limits(5);
        EXPECT_NEAR(path_of(graph, limits).time_ns, expected, 1e-9) << trial;
        limits.most_ns = expected + 1e-6;
        EXPECT_NEAR(path_of(graph, limits).time_ns, expected, 1e-9) << "within a bound, " << trial;
    }
}

/// Forward writes s, which backward reads; input and output are one chain.
LayoutGraph two_passes(double copy_ns) {
    LayoutGraph graph;
    graph.tensors = {tensor("x", 2, copy_ns, LayoutRole::kChain), tensor("s", 2, copy_ns),
                     tensor("y", 2, copy_ns, LayoutRole::kChain),
                     tensor("dy", 2, copy_ns, LayoutRole::kChain),
                     tensor("dx", 2, copy_ns, LayoutRole::kChain)};
    const auto prefers = [](std::size_t place, double other) {
        return [place, other](const std::vector<uint8_t>& orders) {
            return orders[place] == 1 ? 1 : other;
        };
    };
    graph.ops.push_back(op(graph, "save", {0, 1}, 1, prefers(1, 3)));
    graph.ops.push_back(op(graph, "out", {1, 2}, 1, prefers(1, 9)));
    graph.ops.push_back(op(graph, "back", {3, 1, 4}, 2,
                           [](const auto& orders) { return orders[1] == 0 ? 1 : 20; }));
    graph.ops.back().is_backward = true;
    return graph;
}

TEST(LayoutPlan, ChoosesTheBetterPassOrder) {
    const auto plan = plan_layouts(two_passes(100)).value();
    // Backward wants s in order 0, which costs forward 2 and saves backward 19.
    EXPECT_EQ(plan.pass_order, PassOrder::kBackwardFirst);
    EXPECT_EQ(plan.time_ns, 3 + 1 + 1);
    EXPECT_EQ(plan.copies_ns(), 0);
}

TEST(LayoutPlan, GivesTheWholeChainOneOrder) {
    for (const double copy_ns : {0.5, 100.0}) {
        const auto plan = plan_layouts(two_passes(copy_ns)).value();
        EXPECT_EQ(plan.orders[0], plan.orders[3]);
    }
}

TEST(LayoutPlan, IsNeverFasterThanTheBestOfEachOp) {
    const LayoutGraph graph = two_passes(0.5);
    EXPECT_EQ(layout_free_ns(graph), 3);
    EXPECT_GE(plan_layouts(graph)->time_ns, layout_free_ns(graph));
}

TEST(LayoutPlan, KeepsToTheOrdersThatAreAllowed) {
    const auto plan = plan_layouts(two_passes(100), {.allowed = {{}, {"o1"}, {}, {}, {}}}).value();
    EXPECT_EQ(plan.orders[1], 1);
    EXPECT_EQ(plan.time_ns, 1 + 1 + 20);
}

}  // namespace
