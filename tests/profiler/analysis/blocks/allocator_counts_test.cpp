#include "profiler/analysis/blocks/allocator_counts.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace tests;

TEST(CountAllocatorRows, CountsAFreeThatCompletesWithItsRequestOnce) {
    TraceBuilder b;
    b.free(b.allocate({.bytes = 8}));
    b.allocate({.bytes = 8});
    const AllocatorCounts counts = count_allocator_rows(b.finish());
    EXPECT_EQ(counts.events, 3);
    EXPECT_EQ(counts.allocations, 2);
    EXPECT_EQ(counts.live_blocks, 1);
    EXPECT_EQ(counts.segments, 0);
}

/// The events that rebuild the start are those of all devices, where devices share their numbers.
TEST(CountAllocatorRows, LeavesOutWhatWasThereAtTheStart) {
    TraceBuilder b;
    const auto older = b.allocate({.bytes = 8});
    b.allocate({.bytes = 8});
    const auto block = b.allocate({.bytes = 8});
    b.free(older);
    b.free(block);
    Trace trace = b.finish();
    add_diagnostic(trace, {.code = kStartState, .count = 2, .explanation = "At the start."});
    EXPECT_EQ(count_allocator_rows(trace).events, 3);
}

TEST(CountAllocatorRows, CountsSegmentsAtTheEndAndAMappedRangeOnce) {
    Trace trace;
    int64_t event = 0;
    const auto add = [&](AllocatorAction action, int64_t address, int64_t size_bytes) {
        trace.allocator_events.append({.action = action,
                                       .event = event++,
                                       .device = {},
                                       .stream = {},
                                       .address = address,
                                       .size_bytes = size_bytes});
    };
    add(AllocatorAction::kSegmentAlloc, 100, 10);
    add(AllocatorAction::kSegmentAlloc, 110, 10);  // adjacent, but a segment of its own
    add(AllocatorAction::kSegmentAlloc, 200, 10);
    add(AllocatorAction::kSegmentFree, 200, 10);
    add(AllocatorAction::kSegmentMap, 1000, 20);
    add(AllocatorAction::kSegmentMap, 1020, 20);
    EXPECT_EQ(count_allocator_rows(trace).segments, 3);
    add(AllocatorAction::kSegmentUnmap, 1010, 10);  // leaves a hole
    EXPECT_EQ(count_allocator_rows(trace).segments, 4);
    EXPECT_EQ(count_allocator_rows(trace).events, 7);
}

}  // namespace
