#include "profiler/trace/allocator_rows.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kSegment = 0x7f0000000000;

/// Rows of one device, with a counter for events and times that are ten times their number.
struct Rows {
    Trace trace;
    StreamRows streams{trace, trace.devices.append({})};
    AllocatorRows rows{trace, streams};
    int64_t next_event = 0;
    Id<Op> op;

    AllocatorMoment moment() {
        const int64_t event = next_event++;
        return {.event = event, .time_ns = 10 * event, .op = op};
    }
    Rows& apply(RecordedAction action, int64_t address, int64_t size_bytes, int64_t stream = 0,
                int64_t pool = 0) {
        rows.apply({.action = action,
                    .address = address,
                    .size_bytes = size_bytes,
                    .stream = stream,
                    .pool = pool},
                   moment());
        return *this;
    }
    Allocation allocation(std::size_t row) const { return trace.allocations[Id<Allocation>(row)]; }
    AllocatorEvent event(std::size_t row) const {
        return trace.allocator_events[Id<AllocatorEvent>(row)];
    }
};

TEST(AllocatorRows, ABlockFromItsAllocationToItsFree) {
    Rows r;
    r.apply(RecordedAction::kSegmentAlloc, kSegment, 2 * kMiB);
    r.op = Id<Op>(5);
    r.apply(RecordedAction::kAlloc, kSegment, 1000);
    r.rows.set_block_bytes(kSegment, 1024);
    EXPECT_EQ(r.rows.allocated_bytes(), 1024);
    EXPECT_EQ(r.rows.reserved_bytes(), 2 * kMiB);
    r.op = Id<Op>(6);
    r.apply(RecordedAction::kFreeRequested, kSegment, 1000);
    EXPECT_EQ(r.rows.allocated_bytes(), 0);
    EXPECT_EQ(r.rows.live_blocks(), 1U);  // active until the free is complete
    r.apply(RecordedAction::kFreeCompleted, kSegment, 1000);
    EXPECT_EQ(r.rows.live_blocks(), 0U);

    const Allocation a = r.allocation(0);
    EXPECT_EQ(a.requested_bytes, 1000);
    EXPECT_EQ(a.block_bytes, 1024);
    EXPECT_EQ(a.alloc_event, 1);
    EXPECT_EQ(a.free_requested_event, 2);
    EXPECT_EQ(a.free_completed_event, 3);
    EXPECT_EQ(a.alloc_ns, 10);
    EXPECT_EQ(a.free_completed_ns, 30);
    EXPECT_EQ(a.op, Id<Op>(5));
    EXPECT_EQ(a.freeing_op, Id<Op>(6));
    EXPECT_EQ(a.segment, Id<AllocatorEvent>(0));
    EXPECT_EQ(r.trace.storages[a.storage].size_bytes, 1000);
    EXPECT_EQ(r.trace.storages[a.storage].category, Category::kTemporary);
    EXPECT_EQ(r.rows.counts().assumed_block_sizes, 0);
}

TEST(AllocatorRows, AFreeIsCompleteLaterWhenAnotherStreamUsesTheBlock) {
    Rows r;
    r.apply(RecordedAction::kSegmentAlloc, kSegment, 20 * kMiB)
        .apply(RecordedAction::kAlloc, kSegment, kMiB)
        .apply(RecordedAction::kFreeRequested, kSegment, kMiB)
        .apply(RecordedAction::kAlloc, kSegment + kMiB, kMiB)
        .apply(RecordedAction::kFreeCompleted, kSegment, kMiB)
        .apply(RecordedAction::kAlloc, kSegment, kMiB);
    ASSERT_EQ(r.trace.allocations.size(), 3U);
    EXPECT_EQ(r.allocation(0).free_requested_event, 2);
    EXPECT_EQ(r.allocation(0).free_completed_event, 4);
    EXPECT_EQ(r.rows.at(kSegment), Id<Allocation>(2));
    EXPECT_EQ(r.rows.counts().unmatched_frees, 0);
    EXPECT_EQ(r.rows.counts().replaced_blocks, 0);
}

TEST(AllocatorRows, StreamsAndPoolsAreKept) {
    Rows r;
    constexpr int64_t kSide = 0x55aa0010;
    r.apply(RecordedAction::kSegmentAlloc, kSegment, 2 * kMiB, kSide, 1)
        .apply(RecordedAction::kAlloc, kSegment, 512, kSide, 1)
        .apply(RecordedAction::kSegmentAlloc, kSegment + 4 * kMiB, 2 * kMiB)
        .apply(RecordedAction::kAlloc, kSegment + 4 * kMiB, 512);
    EXPECT_EQ(r.allocation(0).pool, 1);
    EXPECT_EQ(r.trace.streams.get<&Stream::handle>(r.allocation(0).stream), kSide);
    EXPECT_EQ(r.event(0).pool, 1);
    EXPECT_EQ(r.allocation(1).pool, 0);
    EXPECT_EQ(r.trace.streams.get<&Stream::handle>(r.allocation(1).stream), 0);
    EXPECT_EQ(r.trace.streams.size(), 2U);
}

TEST(AllocatorRows, OutOfMemoryTellsWhatWasAskedAndWhatWasFree) {
    Rows r;
    r.apply(RecordedAction::kOom, /*free bytes*/ 3 * kMiB, 40 * kMiB);
    EXPECT_EQ(r.event(0).action, AllocatorAction::kOom);
    EXPECT_EQ(r.event(0).size_bytes, 40 * kMiB);
    EXPECT_EQ(r.event(0).free_bytes, 3 * kMiB);
    EXPECT_EQ(r.event(0).address, 0);
}

TEST(AllocatorRows, AnExpandableSegmentGrowsAndShrinksByPages) {
    Rows r;
    r.apply(RecordedAction::kSegmentMap, kSegment, 20 * kMiB)
        .apply(RecordedAction::kSegmentMap, kSegment + 20 * kMiB, 20 * kMiB)
        .apply(RecordedAction::kAlloc, kSegment + 30 * kMiB, 2 * kMiB)
        .apply(RecordedAction::kSegmentUnmap, kSegment + 10 * kMiB, 20 * kMiB);
    EXPECT_EQ(r.rows.reserved_bytes(), 20 * kMiB);
    EXPECT_EQ(r.allocation(0).segment, Id<AllocatorEvent>(1));
    EXPECT_EQ(r.rows.counts().unmatched_segments, 0);
    r.apply(RecordedAction::kAlloc, kSegment + 5 * kMiB, 512);
    EXPECT_EQ(r.allocation(1).segment, Id<AllocatorEvent>(0));
    r.apply(RecordedAction::kAlloc, kSegment + 15 * kMiB, 512);
    EXPECT_FALSE(r.allocation(2).segment.valid());
    EXPECT_EQ(r.rows.counts().outside_segments, 1);
}

TEST(AllocatorRows, NothingAppearsFromNowhereAfterASnapshot) {
    Rows r;
    const std::vector<RecordedSegment> segments{
        {.address = kSegment,
         .size_bytes = 20 * kMiB,
         .stream = 0,
         .pool = 0,
         .blocks = {{kSegment, 4 * kMiB, 4 * kMiB - 100, BlockState::kAllocated},
                    {kSegment + 4 * kMiB, 2 * kMiB, 2 * kMiB, BlockState::kPendingFree},
                    {kSegment + 6 * kMiB, 14 * kMiB, 0, BlockState::kInactive}}}};
    r.rows.load(segments, [&] { return r.moment(); });
    EXPECT_EQ(r.event(0).action, AllocatorAction::kSnapshot);
    EXPECT_EQ(r.event(1).action, AllocatorAction::kSegmentAlloc);
    EXPECT_EQ(r.rows.allocated_bytes(), 4 * kMiB);
    EXPECT_EQ(r.rows.reserved_bytes(), 20 * kMiB);
    EXPECT_EQ(r.allocation(0).block_bytes, 4 * kMiB);
    EXPECT_EQ(r.allocation(0).requested_bytes, 4 * kMiB - 100);
    r.apply(RecordedAction::kFreeCompleted, kSegment + 4 * kMiB, 2 * kMiB)
        .apply(RecordedAction::kFreeRequested, kSegment, 4 * kMiB - 100)
        .apply(RecordedAction::kFreeCompleted, kSegment, 4 * kMiB - 100);
    EXPECT_EQ(r.rows.counts().unmatched_frees, 0);
    EXPECT_EQ(r.rows.live_blocks(), 0U);
    // Every action has a number of its own.
    EXPECT_EQ(r.next_event, 8);
}

TEST(AllocatorRows, CountsWhatDoesNotFitAndGoesOn) {
    Rows r;
    r.apply(RecordedAction::kSegmentAlloc, kSegment, 2 * kMiB)
        .apply(RecordedAction::kFreeRequested, kSegment, 512)
        .apply(RecordedAction::kFreeCompleted, kSegment, 512)
        .apply(RecordedAction::kAlloc, kSegment, 512)
        .apply(RecordedAction::kAlloc, kSegment, 700)
        .apply(RecordedAction::kSegmentFree, kSegment + 8 * kMiB, 2 * kMiB);
    EXPECT_EQ(r.rows.counts().unmatched_frees, 2);
    EXPECT_EQ(r.rows.counts().replaced_blocks, 1);
    EXPECT_EQ(r.rows.counts().unmatched_segments, 1);
    EXPECT_EQ(r.rows.counts().assumed_block_sizes, 2);
    EXPECT_EQ(r.allocation(0).free_completed_event, 4);  // when the next took its place
    EXPECT_EQ(r.allocation(1).block_bytes, 1024);        // the request in whole 512 bytes
    EXPECT_EQ(r.rows.allocated_bytes(), 1024);
}

}  // namespace
}  // namespace profiler
