#include "profiler/view/programs/page_view.h"

#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace profiler;
using tests::TraceBuilder;

/// Bytes of the blocks that are live at each moment.
std::vector<int64_t> heights(const Trace& trace, const MomentList& list) {
    std::vector<int64_t> bytes(list.moments.size(), 0);
    for (const BlockSpan& block : list.blocks) {
        for (uint32_t moment = block.first; moment < block.last; ++moment) {
            bytes[moment] += trace.allocations.get<&Allocation::requested_bytes>(block.allocation);
        }
    }
    return bytes;
}

std::size_t most_live(const MomentList& list) {
    std::vector<std::size_t> live(list.moments.size(), 0);
    for (const BlockSpan& block : list.blocks) {
        for (uint32_t moment = block.first; moment < block.last; ++moment) ++live[moment];
    }
    return *std::max_element(live.begin(), live.end());
}

int64_t highest(const MomentList& list) {
    int64_t most = 0;
    for (const CurveBin& moment : list.moments) most = std::max(most, moment.allocated_bytes);
    return most;
}

TEST(Moments, AreEveryChangeOfASmallTrace) {
    TraceBuilder b;
    const auto first = b.allocate({.bytes = 100, .category = Category::kParameter});
    const auto second = b.allocate({.bytes = 30, .category = Category::kTemporary});
    b.free(second);
    const auto third = b.allocate({.bytes = 50, .category = Category::kActivation});
    const Trace trace = b.finish();
    const MemoryCurve curve(trace);
    const MomentList list = build_moments(trace, curve);
    EXPECT_TRUE(list.is_exact);
    ASSERT_EQ(list.moments.size(), 5U);
    EXPECT_EQ(list.moments[2].allocated_bytes, 130);
    EXPECT_EQ(list.moments[4].by_category[static_cast<std::size_t>(Category::kActivation)], 50);
    ASSERT_EQ(list.blocks.size(), 3U);
    EXPECT_EQ(list.blocks[0].allocation, first);
    EXPECT_EQ(list.blocks[0].last, 5U) << "lives to the end";
    EXPECT_EQ(list.blocks[1].first, 2U);
    EXPECT_EQ(list.blocks[1].last, 3U);
    EXPECT_EQ(list.blocks[2].allocation, third);
    EXPECT_EQ(list.hidden_blocks, 0U);
}

TEST(Moments, StackOfAllBlocksIsAsHighAsTheCurve) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 3000});
    const MomentList list = build_moments(trace, MemoryCurve(trace));
    const std::vector<int64_t> bytes = heights(trace, list);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(bytes[i], list.moments[i].allocated_bytes) << i;
    }
}

TEST(Moments, OfALongTraceKeepThePeakAndTheLargestBlocks) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 20'000});
    const MemoryCurve curve(trace);
    const MomentLimits limits{.max_moments = 500, .max_blocks = 1000, .max_live_blocks = 300};
    const MomentList list = build_moments(trace, curve, limits);
    EXPECT_FALSE(list.is_exact);
    EXPECT_LE(list.moments.size(), 500U);
    EXPECT_LE(list.blocks.size(), 1000U);
    EXPECT_LE(most_live(list), 300U);
    EXPECT_GT(list.hidden_blocks, 0U);
    EXPECT_EQ(highest(list), find_peak(trace).allocated_bytes);
    EXPECT_TRUE(
        std::is_sorted(list.blocks.begin(), list.blocks.end(),
                       [](const BlockSpan& a, const BlockSpan& b) { return a.first < b.first; }));
    EXPECT_TRUE(
        std::is_sorted(list.moments.begin(), list.moments.end(),
                       [](const CurveBin& a, const CurveBin& b) { return a.time_ns < b.time_ns; }));
}

TEST(Moments, OfATraceWithoutAllocationsAreOne) {
    const Trace trace = TraceBuilder().finish();
    const MomentList list = build_moments(trace, MemoryCurve(trace));
    EXPECT_EQ(list.moments.size(), 1U);
    EXPECT_TRUE(list.blocks.empty());
}

}  // namespace
