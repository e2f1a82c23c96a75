#include "profiler/allocator/simulator.h"
#include "tests/profiler/allocator/invariants.h"

#include <gtest/gtest.h>

/// Memory that other streams use, captures and private pools. These rules come from source and no
/// recording confirms them (docs/dev/allocator.md).
namespace profiler {
namespace {

class StreamsAndPools : public testing::Test {
protected:
    BlockHandle allocate(int64_t size_bytes, int64_t stream = 0, int64_t pool = 0) {
        return simulator_.allocate({size_bytes, stream, pool}).value_or(kNoBlock);
    }
    int64_t address(BlockHandle block) const { return simulator_.block(block).address; }
    std::vector<int64_t> released_by_empty_cache() {
        simulator_.take_events();
        simulator_.empty_cache();
        std::vector<int64_t> addresses;
        for (const auto& event : simulator_.take_events()) addresses.push_back(event.address);
        return addresses;
    }
    void TearDown() override { tests::expect_sound(simulator_); }

    ModelDriver driver_{100 * kMiB};
    Simulator simulator_{{}, driver_};
};

TEST_F(StreamsAndPools, AFreeBlockServesItsOwnStreamOnly) {
    const auto a = allocate(4 * kMiB, 7);
    const int64_t place = address(a);
    simulator_.free(a);
    EXPECT_NE(address(allocate(4 * kMiB, 8)), place);
    EXPECT_EQ(address(allocate(4 * kMiB, 7)), place);
}

TEST_F(StreamsAndPools, ABlockThatAnotherStreamUsesIsFreeOnceThatStreamGotThere) {
    const auto a = allocate(4 * kMiB);
    const int64_t place = address(a);
    simulator_.record_stream(a, 5);
    simulator_.free(a);
    EXPECT_EQ(simulator_.use().allocated_bytes, 0) << "freed for the program at once";
    EXPECT_EQ(simulator_.use().active_bytes, 4 * kMiB) << "but still active";
    const auto b = allocate(4 * kMiB);
    EXPECT_NE(address(b), place);
    simulator_.finish_stream_work(5);
    EXPECT_EQ(address(allocate(4 * kMiB)), place) << "the next allocation notices";
}

TEST_F(StreamsAndPools, AllStreamsMustGetThere) {
    const auto a = allocate(4 * kMiB);
    const int64_t place = address(a);
    simulator_.record_stream(a, 5);
    simulator_.record_stream(a, 6);
    simulator_.record_stream(a, 5);
    simulator_.free(a);
    simulator_.finish_stream_work(5);
    EXPECT_NE(address(allocate(4 * kMiB)), place);
    simulator_.finish_stream_work(6);
    EXPECT_EQ(address(allocate(4 * kMiB)), place);
}

TEST_F(StreamsAndPools, TheOwnStreamNeedsNoEvent) {
    const auto a = allocate(4 * kMiB, 3);
    simulator_.record_stream(a, 3);
    simulator_.free(a);
    EXPECT_EQ(simulator_.use().active_bytes, 0);
}

TEST_F(StreamsAndPools, EmptyingTheCacheWaitsForOtherStreams) {
    const auto a = allocate(4 * kMiB);
    simulator_.record_stream(a, 5);
    simulator_.free(a);
    simulator_.empty_cache();
    EXPECT_EQ(simulator_.use().reserved_bytes, 0);
}

TEST_F(StreamsAndPools, SegmentsAreReleasedInTheOrderOfPoolsAndStreams) {
    const auto a = allocate(12 * kMiB, 9);
    const auto b = allocate(12 * kMiB, 2);
    const auto small = allocate(512, 9);
    const auto c = allocate(10 * kMiB, 9);
    const std::vector<int64_t> expected{address(b), address(c), address(a), address(small)};
    for (const auto block : {a, b, small, c}) simulator_.free(block);
    EXPECT_EQ(released_by_empty_cache(), expected) << "large before small, by stream, then size";
}

TEST_F(StreamsAndPools, APrivatePoolSharesNothingWithTheDefaultOne) {
    simulator_.free(allocate(4 * kMiB));
    simulator_.begin_pool(1);
    const auto inside = allocate(4 * kMiB, 0, 1);
    simulator_.end_pool(1);
    EXPECT_EQ(simulator_.num_segments(), 2);
    const int64_t place = address(inside);
    simulator_.free(inside);
    EXPECT_NE(address(allocate(4 * kMiB)), place);
}

TEST_F(StreamsAndPools, APrivatePoolIsReleasedOnlyWhenNobodyUsesIt) {
    simulator_.begin_pool(1);
    simulator_.free(allocate(4 * kMiB, 0, 1));
    simulator_.end_pool(1);
    simulator_.empty_cache();
    EXPECT_EQ(simulator_.use().reserved_bytes, 20 * kMiB);
    simulator_.begin_pool(1);  // a second graph shares it
    simulator_.end_pool(1);
    simulator_.release_pool(1);
    simulator_.empty_cache();
    EXPECT_EQ(simulator_.use().reserved_bytes, 20 * kMiB);
    simulator_.release_pool(1);
    simulator_.empty_cache();
    EXPECT_EQ(simulator_.use().reserved_bytes, 0);
}

TEST_F(StreamsAndPools, FreeablePrivatePoolsReleaseSmallBeforeLarge) {
    simulator_.begin_pool(1);
    const auto large = allocate(12 * kMiB, 0, 1);
    const auto small = allocate(512, 0, 1);
    simulator_.end_pool(1);
    const std::vector<int64_t> expected{address(small), address(large)};
    simulator_.free(large);
    simulator_.free(small);
    simulator_.release_pool(1);
    EXPECT_EQ(released_by_empty_cache(), expected);
}

TEST_F(StreamsAndPools, DuringACaptureEventsAreNotLookedAt) {
    const auto a = allocate(4 * kMiB);
    const int64_t place = address(a);
    simulator_.record_stream(a, 5);
    simulator_.free(a);
    simulator_.finish_stream_work(5);
    simulator_.begin_pool(1);
    EXPECT_NE(address(allocate(4 * kMiB)), place);
    simulator_.end_pool(1);
    EXPECT_EQ(address(allocate(4 * kMiB)), place);
}

TEST_F(StreamsAndPools, FreesDuringACaptureAreDeferredUntilItsEnd) {
    simulator_.begin_pool(1);
    const auto a = allocate(4 * kMiB);
    simulator_.record_stream(a, 5);  // inside the capture, so the graph orders it
    const int64_t place = address(a);
    simulator_.free(a);
    EXPECT_EQ(simulator_.use().active_bytes, 4 * kMiB);
    simulator_.end_pool(1);
    EXPECT_EQ(address(allocate(4 * kMiB)), place) << "no event is waited for";
}

TEST_F(StreamsAndPools, StreamUsesBeforeTheCaptureAreStillWaitedForAfterIt) {
    const auto a = allocate(4 * kMiB);
    simulator_.record_stream(a, 5);
    const int64_t place = address(a);
    simulator_.begin_pool(1);
    simulator_.free(a);
    simulator_.end_pool(1);
    EXPECT_NE(address(allocate(4 * kMiB)), place);
    simulator_.finish_stream_work(5);
    EXPECT_EQ(address(allocate(4 * kMiB)), place);
}

TEST_F(StreamsAndPools, DuringACaptureNothingIsRetried) {
    simulator_.free(allocate(60 * kMiB));
    simulator_.begin_pool(1);
    EXPECT_EQ(allocate(70 * kMiB, 0, 1), kNoBlock);
    EXPECT_EQ(simulator_.num_retries(), 0);
    simulator_.end_pool(1);
    EXPECT_NE(allocate(70 * kMiB), kNoBlock);
    EXPECT_EQ(simulator_.num_retries(), 1);
}

TEST_F(StreamsAndPools, APoolWithoutSplitsGivesWholeSegments) {
    simulator_.begin_pool(1);
    simulator_.set_no_split(1);
    const auto block = allocate(2 * kMiB, 0, 1);
    simulator_.end_pool(1);
    EXPECT_EQ(simulator_.block(block).size_bytes, 20 * kMiB);
}

TEST_F(StreamsAndPools, APoolForOverflowServesWhenTheDeviceIsFull) {
    simulator_.begin_pool(1);
    simulator_.set_use_on_oom(1);
    const auto kept = allocate(40 * kMiB, 0, 1);
    simulator_.end_pool(1);
    const int64_t place = address(kept);
    simulator_.free(kept);
    allocate(60 * kMiB);
    EXPECT_EQ(address(allocate(30 * kMiB)), place);
    EXPECT_EQ(simulator_.num_retries(), 0) << "before anything cached is released";
}

}  // namespace
}  // namespace profiler
