#include "profiler/view/kernels/layouts_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::HasSubstr;

/// x -> y -> z: the second op likes y in the other order, and a copy is cheap.
LayoutGraph small_graph() {
    LayoutGraph graph{.device_name = "a processor", .num_rounds = 3};
    graph.tensors = {
        {.name = "x", .dimensions = "ab", .role = LayoutRole::kChain, .orders = {"ab"}},
        {.name = "y", .dimensions = "ab", .orders = {"ab", "ba"}, .copy_ns = {0, 500, 500, 0}},
        {.name = "z", .dimensions = "ab", .orders = {"ab"}}};
    graph.ops = {{.name = "first",
                  .op_class = OpClass::kContraction,
                  .tensors = {0, 1},
                  .num_reads = 1,
                  .configurations = {{{0, 0}, 1000}, {{0, 1}, 9000}}},
                 {.name = "second",
                  .op_class = OpClass::kElementWise,
                  .is_backward = true,
                  .tensors = {1, 2},
                  .num_reads = 1,
                  .configurations = {{{0, 0}, 4000}, {{1, 0}, 2000}}}};
    return graph;
}

TEST(LayoutsView, ShowsThePlanBesideTorchAndTheBound) {
    const LayoutGraph graph = small_graph();
    const auto plan = plan_layouts(graph);
    const auto torch = plan_layouts(graph, {.allowed = {{}, {"ab"}, {}}});
    ASSERT_TRUE(plan && torch);
    const LayoutsView view =
        build_layouts_view(graph, {.plan = &*plan, .torch = &*torch, .whole_ns = {3800, 5700}});
    EXPECT_EQ(view.time_ns, 3500);
    EXPECT_EQ(view.copies_ns, 500);
    EXPECT_EQ(view.free_ns, 3000);
    EXPECT_EQ(view.torch_ns, 5000);
    EXPECT_EQ(view.chain_order, "ab");
    EXPECT_EQ(view.num_configurations, 4);
    ASSERT_EQ(view.rows.size(), 2u);
    EXPECT_EQ(view.rows[0].orders, "ab → ab");
    EXPECT_THAT(view.rows[1].copies, ElementsAre("y ab → ba"));
    EXPECT_THAT(view.rows[1].all_ns, ElementsAre(2000, 4000));
    EXPECT_DOUBLE_EQ(view.rows[1].gap(), 0.25);
    EXPECT_EQ(view.rows[1].torch_ns, 4000);
    EXPECT_EQ(view.table.rows.size(), 3u) << "and the sum";
    EXPECT_THAT(view.sentence, HasSubstr("16.7 % more than the fastest configuration"));
    EXPECT_THAT(view.sentence, HasSubstr("1.43 times as long"));
    EXPECT_THAT(view.sentence, HasSubstr("takes 3.80 µs in these orders and 5.70 µs in torch's"));
}

TEST(LayoutsView, ABusyMachineHasNoBetterChoice) {
    const LayoutGraph graph = small_graph();
    const auto plan = plan_layouts(graph);
    ASSERT_TRUE(plan);
    LayoutsRequest request{.plan = &*plan, .torch = &*plan, .whole_ns = {5700, 3800}};
    EXPECT_THAT(build_layouts_view(graph, request).sentence, HasSubstr("the better choice"));
    request.was_busy = true;
    const std::string sentence = build_layouts_view(graph, request).sentence;
    EXPECT_EQ(sentence.find("the better choice"), std::string::npos);
    EXPECT_THAT(sentence, HasSubstr("The machine was busy"));
}

TEST(LayoutsView, NeedsNoOrdersOfTorch) {
    const LayoutGraph graph = small_graph();
    const auto plan = plan_layouts(graph);
    ASSERT_TRUE(plan);
    const LayoutsView view =
        build_layouts_view(graph, {.plan = &*plan, .torch = nullptr, .whole_ns = {3800}});
    EXPECT_FALSE(view.torch_ns);
    EXPECT_FALSE(view.rows[0].torch_ns);
    EXPECT_EQ(view.sentence.find("torch"), std::string::npos);
}

}  // namespace
