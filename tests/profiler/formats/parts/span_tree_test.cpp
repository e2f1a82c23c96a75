#include "profiler/formats/parts/span_tree.h"

#include <gtest/gtest.h>

#include <random>

namespace profiler::kineto {
namespace {

/// From the last span that began, outwards one by one.
int32_t innermost_step_by_step(const SpanTree& tree, int64_t time_ns) {
    int32_t node = -1;
    for (const SpanTree::Node& candidate : tree.nodes()) node += candidate.start_ns <= time_ns;
    while (node >= 0 && tree.at(node).end_ns < time_ns) node = tree.at(node).parent;
    return node;
}

TEST(SpanTree, FindsTheSpanThatASearchStepByStepFinds) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<SpanTree::Node> nodes;
        std::uniform_int_distribution<int64_t> start(0, 300), length(0, round % 3 == 0 ? 20 : 200);
        for (uint32_t i = 0; i < 150; ++i) {
            const int64_t start_ns = start(random);
            nodes.push_back({start_ns, start_ns + length(random), i, -1});
        }
        const SpanTree tree(std::move(nodes));
        for (int64_t time_ns = -1; time_ns < 510; ++time_ns) {
            ASSERT_EQ(tree.innermost(time_ns), innermost_step_by_step(tree, time_ns))
                << "round " << round << " time " << time_ns;
        }
    }
}

/// Step by step this would look at 5 * 10^11 spans.
TEST(SpanTree, IsQuickForSpansThatLieDeepInEachOther) {
    constexpr int64_t kDepth = 1'000'000;
    std::vector<SpanTree::Node> nodes;
    for (int64_t i = 0; i < kDepth; ++i) nodes.push_back({i, 2 * kDepth - i, 0, -1});
    const SpanTree tree(std::move(nodes));
    for (int64_t i = 1; i < kDepth; ++i) {
        ASSERT_EQ(tree.innermost(kDepth + i), kDepth - i);
    }
}

}  // namespace
}  // namespace profiler::kineto
