#include "tests/profiler/allocator/configured_simulator.h"

#include <gtest/gtest.h>

/// Memory limits, retries, garbage collection and max_split_size. These rules come from source and
/// no recording confirms them (docs/dev/allocator.md).
namespace profiler {
namespace {

using Release = tests::ConfiguredSimulator;

TEST_F(Release, ALimitHoldsForReservedMemory) {
    use("", 30 * kMiB);
    EXPECT_NE(allocate(9 * kMiB), kNoBlock) << "a segment of 20 MiB";
    EXPECT_EQ(allocate(12 * kMiB + 1), kNoBlock) << "14 more would be 34";
    const OutOfMemory& oom = simulator_->out_of_memory();
    EXPECT_EQ(oom.requested_bytes, 12 * kMiB + 1);
    EXPECT_EQ(oom.asked_bytes, 14 * kMiB);
    EXPECT_EQ(oom.free_bytes, 10 * kMiB);
    EXPECT_EQ(oom.use.allocated_bytes, 9 * kMiB);
    EXPECT_NE(allocate(10 * kMiB, 1), kNoBlock) << "exactly at the limit";
}

TEST_F(Release, AFractionIsOfTheLimitOrTheDevice) {
    use("per_process_memory_fraction:0.5", 40 * kMiB);
    EXPECT_EQ(allocate(22 * kMiB), kNoBlock);
    use("per_process_memory_fraction:0.5", {}, 40 * kMiB);
    EXPECT_EQ(allocate(22 * kMiB), kNoBlock);
    EXPECT_NE(allocate(20 * kMiB), kNoBlock);
}

TEST_F(Release, AFullDeviceGivesBackWhatIsCachedAndTriesAgain) {
    use("", {}, 50 * kMiB);
    simulator_->free(allocate(30 * kMiB));
    EXPECT_NE(allocate(40 * kMiB), kNoBlock);
    EXPECT_EQ(simulator_->num_retries(), 1);
    EXPECT_EQ(reserved(), 40 * kMiB);
}

TEST_F(Release, SegmentsThatArePartlyUsedStay) {
    use("", {}, 50 * kMiB);
    const auto kept = allocate(2 * kMiB);
    simulator_->free(allocate(2 * kMiB));
    simulator_->free(allocate(12 * kMiB));
    EXPECT_EQ(allocate(40 * kMiB), kNoBlock);
    EXPECT_EQ(simulator_->num_retries(), 1) << "tried once more, in vain";
    EXPECT_EQ(reserved(), 20 * kMiB);
    EXPECT_EQ(simulator_->out_of_memory().free_bytes, 30 * kMiB);
    EXPECT_EQ(size(kept), 2 * kMiB);
}

TEST_F(Release, TheRetryDoesNotSearchAgain) {
    use("", {}, 40 * kMiB);
    const auto a = allocate(8 * kMiB);
    const auto b = allocate(8 * kMiB);
    allocate(4 * kMiB);  // keeps the segment
    simulator_->record_stream(b, 5);
    simulator_->free(a);
    simulator_->free(b);
    // Waiting for stream 5 merges a and b to 16 MiB. That would fit, but a new segment is taken.
    const auto other = allocate(14 * kMiB, 1);
    simulator_->free(other);
    const auto c = allocate(16 * kMiB);
    ASSERT_NE(c, kNoBlock);
    EXPECT_EQ(simulator_->num_retries(), 1);
    EXPECT_EQ(reserved(), 36 * kMiB) << "20 and 16: stream 1's segment went back";
}

TEST_F(Release, GarbageCollectionNeedsALimit) {
    use("garbage_collection_threshold:0.5");
    simulator_->free(allocate(30 * kMiB));
    allocate(40 * kMiB);
    EXPECT_EQ(reserved(), 70 * kMiB);
}

TEST_F(Release, GarbageCollectionFreesTheOldestSegmentsAboveTheThreshold) {
    use("garbage_collection_threshold:0.7", 100 * kMiB);
    const auto old = allocate(20 * kMiB);
    const auto young = allocate(32 * kMiB);
    const int64_t old_place = address(old);
    simulator_->free(old);
    for (int i = 0; i < 5; ++i) allocate(2 * kMiB, 1);  // searches of the large pool raise the ages
    simulator_->free(young);
    simulator_->take_events();
    // 20 + 32 + 20 MiB are reserved, 2 above the threshold. The average age lies between theirs.
    allocate(34 * kMiB, 2);
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 2u) << "the young one stays";
    EXPECT_EQ(events[0].action, RecordedAction::kSegmentFree);
    EXPECT_EQ(events[0].address, old_place);
    EXPECT_EQ(simulator_->num_retries(), 0);
}

TEST_F(Release, GarbageCollectionStopsWhenNothingIsWhole) {
    use("garbage_collection_threshold:0.1", 100 * kMiB);
    allocate(2 * kMiB);
    const auto b = allocate(2 * kMiB);
    simulator_->free(b);
    simulator_->take_events();
    allocate(30 * kMiB);
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].action, RecordedAction::kSegmentAlloc);
}

TEST_F(Release, BlocksFromMaxSplitSizeOnAreNotSplit) {
    use("max_split_size_mb:32");
    simulator_->free(allocate(60 * kMiB));
    const auto small = allocate(4 * kMiB);
    EXPECT_EQ(reserved(), 80 * kMiB) << "an oversize block serves no small request";
    const auto large = allocate(50 * kMiB);
    EXPECT_EQ(size(large), 60 * kMiB) << "and is given whole";
    EXPECT_EQ(size(small), 4 * kMiB);
}

TEST_F(Release, OversizeRequestsDoNotWasteTooMuch) {
    use("max_split_size_mb:32");
    simulator_->free(allocate(60 * kMiB));
    EXPECT_EQ(size(allocate(40 * kMiB)), 40 * kMiB) << "20 MiB more is too much";
    EXPECT_EQ(size(allocate(40 * kMiB + 512)), 60 * kMiB);
    use("max_split_size_mb:32,max_non_split_rounding_mb:64");
    simulator_->free(allocate(60 * kMiB));
    EXPECT_EQ(size(allocate(40 * kMiB)), 60 * kMiB) << "unless the setting says so";
}

TEST_F(Release, WithMaxSplitSizeOneLargeEnoughBlockIsReleasedFirst) {
    use("max_split_size_mb:20", {}, 150 * kMiB);
    const auto small = allocate(30 * kMiB);
    const auto large = allocate(70 * kMiB);
    const auto other = allocate(40 * kMiB);
    const int64_t large_place = address(large);
    for (const auto block : {small, large, other}) simulator_->free(block);
    simulator_->take_events();
    allocate(46 * kMiB);  // the smallest that is large enough is 70, which would waste too much
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].address, large_place);
    EXPECT_EQ(simulator_->num_retries(), 0);
}

TEST_F(Release, WithMaxSplitSizeTheLargestBlocksAreReleasedUntilTheyAreEnough) {
    use("max_split_size_mb:20", {}, 150 * kMiB);
    const auto a = allocate(30 * kMiB);
    const auto b = allocate(40 * kMiB);
    const auto c = allocate(50 * kMiB);
    const std::vector<int64_t> expected{address(c), address(b)};
    for (const auto block : {a, b, c}) simulator_->free(block);
    simulator_->take_events();
    EXPECT_NE(allocate(80 * kMiB), kNoBlock);
    std::vector<int64_t> released;
    for (const auto& event : simulator_->take_events()) {
        if (event.action == RecordedAction::kSegmentFree) released.push_back(event.address);
    }
    EXPECT_EQ(released, expected);
    EXPECT_EQ(simulator_->num_retries(), 0);
}

}  // namespace
}  // namespace profiler
