#include "profiler/analysis/step/peak.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace {

using namespace tests;
using testing::ElementsAre;

TEST(FindPeak, CountsWhatSetUpLeftAliveAndSplitsItByCategory) {
    TraceBuilder b;
    b.allocate({.bytes = 1000, .category = Category::kParameter});
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op("aten::addmm");
    const auto first = b.allocate({.bytes = 300, .category = Category::kActivation, .op = op});
    const auto second = b.allocate({.bytes = 50, .op = op});
    b.end_phase();
    b.free(second);
    b.free(first);
    const Trace trace = b.finish();

    const PeakReport peak = find_peak(trace);
    EXPECT_EQ(peak.allocated_bytes, 1350);
    EXPECT_EQ(peak.reserved_bytes, 1350);
    EXPECT_EQ(peak.event, 2);
    EXPECT_EQ(peak.time_ns, 2 * TraceBuilder::kTickNs);
    EXPECT_EQ(peak.op, op);
    EXPECT_EQ(peak.step, Id<Step>(0));
    EXPECT_EQ(peak.phase, Id<Phase>(0));
    EXPECT_EQ(peak.by_category[static_cast<size_t>(Category::kParameter)], 1000);
    EXPECT_EQ(peak.by_category[static_cast<size_t>(Category::kActivation)], 300);
    EXPECT_EQ(peak.by_category[static_cast<size_t>(Category::kTemporary)], 50);
    ASSERT_EQ(peak.live.size(), 3u);
    EXPECT_EQ(peak.live.front(), Id<Allocation>(0)) << "largest first";
    EXPECT_EQ(peak.live.back(), second);
}

TEST(FindPeak, ReportsFirstTimeWhenPeakRepeats) {
    TraceBuilder b;
    b.begin_step();
    for (int i = 0; i < 3; ++i) b.free(b.allocate({.bytes = 64}));
    EXPECT_EQ(find_peak(b.finish()).event, 0);
}

TEST(FindPeak, LeavesOutWhatHappenedBeforeAndBetweenSteps) {
    TraceBuilder b;
    b.free(b.allocate({.bytes = 1 << 20}));  // warm-up
    b.begin_step();
    b.free(b.allocate({.bytes = 10}));
    b.end_step();
    b.free(b.allocate({.bytes = 1 << 19}));  // between steps
    b.begin_step();
    b.free(b.allocate({.bytes = 20}));
    b.end_step();
    b.free(b.allocate({.bytes = 1 << 21}));  // after them
    const Trace trace = b.finish();
    const PeakReport peak = find_peak(trace);
    EXPECT_EQ(peak.allocated_bytes, 20);
    EXPECT_EQ(peak.step, Id<Step>(1));
}

TEST(FindPeak, LooksAtTheWholeTraceWithoutSteps) {
    TraceBuilder b;
    b.free(b.allocate({.bytes = 77}));
    const PeakReport peak = find_peak(b.finish());
    EXPECT_EQ(peak.allocated_bytes, 77);
    EXPECT_FALSE(peak.step.valid());
}

TEST(FindPeak, OfAStepThatOnlyFreesIsWhatLivedWhenItBegan) {
    TraceBuilder b;
    const auto a = b.allocate({.bytes = 100});
    b.begin_step();
    b.free(a);
    EXPECT_EQ(find_peak(b.finish()).allocated_bytes, 100);
}

TEST(FindPeak, OfAnEmptyTraceIsZero) {
    EXPECT_EQ(find_peak(Trace{}).allocated_bytes, 0);
    EXPECT_TRUE(find_peak(Trace{}).live.empty());
}

TEST(FindPeak, TakesReservedBytesFromSegments) {
    TraceBuilder b;
    auto& events = b.trace().allocator_events;
    b.begin_step();
    events.append({.action = AllocatorAction::kSegmentAlloc, .event = 0, .size_bytes = 2000});
    b.allocate({.bytes = 10});
    events.append({.action = AllocatorAction::kSegmentFree, .event = 1, .size_bytes = 2000});
    events.append({.action = AllocatorAction::kOom, .event = 1, .size_bytes = 999999});
    events.append({.action = AllocatorAction::kSnapshot, .event = 1, .size_bytes = 999999});
    b.allocate({.bytes = 20});
    EXPECT_EQ(find_peak(b.finish()).reserved_bytes, 2000);
}

TEST(FindPeak, LooksAtTheCardWhenTheHostIsThereToo) {
    TraceBuilder b;
    const auto gpu = b.trace().devices.append({.name = b.text("cuda:0")});
    b.begin_step();
    b.allocate({.bytes = 500});
    const auto on_gpu = b.allocate({.bytes = 20});
    b.trace().allocations.set<&Allocation::device>(on_gpu, gpu);
    EXPECT_EQ(find_peak(b.finish()).allocated_bytes, 20);
}

TEST(LiveAt, TakesTheBlocksOfOneDeviceThatAreNotFreedYet) {
    TraceBuilder b;
    const auto other = b.trace().devices.append({.name = b.text("cuda:1")});
    const auto on_other = [&](const tests::AllocationSpec& spec) {
        const auto block = b.allocate(spec);
        b.trace().allocations.set<&Allocation::device>(block, other);
        return block;
    };
    const auto small = on_other({.bytes = 10, .category = Category::kActivation});
    const auto large = on_other({.bytes = 40, .category = Category::kParameter});
    const auto here = b.allocate({.bytes = 90});
    b.free(small);  // event 3
    const Trace trace = b.finish();
    EXPECT_THAT(live_at(trace, 2, other), ElementsAre(large, small));
    EXPECT_THAT(live_at(trace, 3, other), ElementsAre(large));
    EXPECT_THAT(live_at(trace, 3, trace.allocations.get<&Allocation::device>(here)),
                ElementsAre(here));
    const CategoryBytes bytes = bytes_by_category(trace, live_at(trace, 2, other));
    EXPECT_EQ(bytes[static_cast<std::size_t>(Category::kActivation)], 10);
    EXPECT_EQ(bytes[static_cast<std::size_t>(Category::kParameter)], 40);
    EXPECT_EQ(bytes[static_cast<std::size_t>(Category::kTemporary)], 0);
}

TEST(CategoryOfBlock, IsUnknownWithoutAStorage) {
    TraceBuilder b;
    const auto block = b.allocate({.bytes = 10, .category = Category::kGradient});
    EXPECT_EQ(category_of_block(b.trace(), block), Category::kGradient);
    b.trace().allocations.set<&Allocation::storage>(block, {});
    EXPECT_EQ(category_of_block(b.trace(), block), Category::kUnknown);
}

/// Event numbers that are far apart or out of table order (imported files) give the same peak.
TEST(FindPeak, FollowsEventNumbersWhateverTheirGaps) {
    std::mt19937 random(7);
    for (const int64_t gap : {int64_t{1}, int64_t{1'000'000'000}}) {
        Trace trace;
        // live: 5, 5+7, 7, 7+11, 11 in event order; rows are shuffled
        std::vector<Allocation> rows{
            {.requested_bytes = 5, .alloc_event = 1 * gap, .free_requested_event = 3 * gap},
            {.requested_bytes = 7, .alloc_event = 2 * gap, .free_requested_event = 5 * gap},
            {.requested_bytes = 11, .alloc_event = 4 * gap}};
        std::shuffle(rows.begin(), rows.end(), random);
        for (const auto& row : rows) trace.allocations.append(row);
        EXPECT_EQ(find_peak(trace).allocated_bytes, 18);
        EXPECT_EQ(find_peak(trace).event, 4 * gap);
    }
}

/// The peak and what lives at it agree with a plain simulation on random traces.
TEST(FindPeak, EqualsAPlainSimulation) {
    std::mt19937 random(42);
    for (int round = 0; round < 50; ++round) {
        TraceBuilder b;
        b.begin_step();
        std::vector<Id<Allocation>> live;
        int64_t live_bytes = 0, expected = 0;
        for (int i = 0; i < 200; ++i) {
            if (live.empty() || random() % 2 == 0) {
                const auto bytes = static_cast<int64_t>(random() % 1000);
                live.push_back(b.allocate({.bytes = bytes}));
                live_bytes += bytes;
                expected = std::max(expected, live_bytes);
            } else {
                const std::size_t which = random() % live.size();
                live_bytes -= b.trace().allocations.get<&Allocation::requested_bytes>(live[which]);
                b.free(live[which]);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
            }
        }
        const Trace trace = b.finish();
        const PeakReport peak = find_peak(trace);
        EXPECT_EQ(peak.allocated_bytes, expected);
        int64_t sum = 0;
        for (const auto id : peak.live)
            sum += trace.allocations.get<&Allocation::requested_bytes>(id);
        EXPECT_EQ(sum, expected);
    }
}

}  // namespace
