#include "profiler/charts/flow_chart.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace profiler {
namespace {

/// A layer of a checkpoint recipe: three ops forward, the same three again, and their backward.
MovementFlow checkpointed_flow() {
    MovementFlow flow;
    flow.layer = 1;
    const auto add = [&](const char* name, PhaseKind phase, bool again) {
        MovementNode node;
        node.name = name;
        node.module = "output.dense";
        node.phase = phase;
        node.runs_again = again;
        node.call = Id<Op>(flow.nodes.size());
        flow.nodes.push_back(std::move(node));
    };
    for (const char* name : {"copy_", "addmm", "gelu"}) add(name, PhaseKind::kForward, false);
    for (const char* name : {"copy_", "addmm", "gelu"}) add(name, PhaseKind::kBackward, true);
    for (const char* name : {"gelu_backward", "mm", "sum"}) add(name, PhaseKind::kBackward, false);
    flow.edges = {{.from = 0, .to = 1, .words = 8, .tensor = {}},
                  {.from = 3, .to = 4, .words = 8, .tensor = {}},
                  {.from = 4, .to = 6, .words = 8, .tensor = {}},
                  {.from = 6, .to = 8, .words = 8, .tensor = {}}};
    return flow;
}

bool overlap(const Rect& a, const Rect& b) {
    return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

TEST(FlowLayout, WhatRunsAgainStandsBesideTheSameCallOfForward) {
    const MovementFlow flow = checkpointed_flow();
    const FlowLayout layout = layout_flow(flow, {10, 20, 1140, 0});
    ASSERT_EQ(layout.nodes.size(), 9U);
    ASSERT_EQ(layout.titles.size(), 3U);
    EXPECT_EQ(layout.titles[1].text, "Forward again, downwards");
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_DOUBLE_EQ(layout.nodes[i].y, layout.nodes[i + 3].y);
        EXPECT_LT(layout.nodes[i].right(), layout.nodes[i + 3].x);
        EXPECT_LT(layout.nodes[i + 3].right(), layout.nodes[i + 6].x);
    }
    for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
        EXPECT_GE(layout.nodes[i].x, 10);
        EXPECT_LE(layout.nodes[i].right(), 1150);
        EXPECT_LE(layout.nodes[i].bottom(), layout.bottom);
        for (std::size_t j = 0; j < i; ++j) {
            EXPECT_FALSE(overlap(layout.nodes[i], layout.nodes[j])) << i << " " << j;
        }
    }
    // Backward runs upwards.
    EXPECT_GT(layout.nodes[6].y, layout.nodes[8].y);
    EXPECT_EQ(layout.paths[0].kind, FlowPathKind::kNext);
    EXPECT_EQ(layout.paths[1].kind, FlowPathKind::kNext);
    EXPECT_EQ(layout.paths[2].kind, FlowPathKind::kSaved);
    EXPECT_EQ(layout.paths[3].kind, FlowPathKind::kSkip);
}

TEST(FlowLayout, WithoutACheckpointThereAreTwoColumns) {
    MovementFlow flow = checkpointed_flow();
    std::erase_if(flow.nodes, [](const MovementNode& node) { return node.runs_again; });
    flow.edges.clear();
    const FlowLayout layout = layout_flow(flow, {0, 0, 1140, 0});
    ASSERT_EQ(layout.titles.size(), 2U);
    EXPECT_EQ(layout.titles[1].text, "Backward, upwards");
    // One column needs no title.
    std::erase_if(flow.nodes, [](const auto& node) { return node.phase == PhaseKind::kBackward; });
    EXPECT_TRUE(layout_flow(flow, {0, 0, 1140, 0}).titles.empty());
}

/// More calls run again than forward made: each stands below the one before.
TEST(FlowLayout, ACallThatForwardDidNotMakeStandsBelowTheOneBefore) {
    MovementFlow flow = checkpointed_flow();
    MovementNode extra = flow.nodes[3];
    extra.name = "dropout_forward";
    flow.nodes.insert(flow.nodes.begin() + 4, extra);
    flow.edges.clear();
    const FlowLayout layout = layout_flow(flow, {0, 0, 1140, 0});
    EXPECT_GT(layout.nodes[4].y, layout.nodes[3].bottom());
    EXPECT_GT(layout.nodes[5].y, layout.nodes[4].bottom());
    EXPECT_LE(layout.nodes[6].bottom(), layout.bottom);
}

}  // namespace
}  // namespace profiler
