#include "profiler/allocator/simulator.h"
#include "profiler/allocator/sizes.h"
#include "tests/profiler/allocator/invariants.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

/// The rules for a program on one stream with default settings, one by one.
namespace profiler {
namespace {

class DefaultPolicy : public testing::Test {
protected:
    BlockHandle allocate(int64_t size_bytes) {
        const auto block = simulator_.allocate({size_bytes});
        EXPECT_TRUE(block.has_value());
        return block.value_or(kNoBlock);
    }
    int64_t address(BlockHandle block) const { return simulator_.block(block).address; }
    int64_t size(BlockHandle block) const { return simulator_.block(block).size_bytes; }
    void TearDown() override { tests::expect_sound(simulator_); }

    ModelDriver driver_;
    Simulator simulator_{{}, driver_};
};

TEST_F(DefaultPolicy, SmallRequestsShareASegmentOfTwoMiB) {
    const auto a = allocate(100);
    const auto b = allocate(kMiB);
    EXPECT_EQ(address(b), address(a) + 512);
    EXPECT_EQ(size(b), kMiB);
    EXPECT_EQ(simulator_.use().reserved_bytes, 2 * kMiB);
    EXPECT_EQ(simulator_.num_segments(), 1);
}

TEST_F(DefaultPolicy, SmallAndLargeRequestsLieInOtherSegments) {
    allocate(512);
    allocate(2 * kMiB);
    EXPECT_EQ(simulator_.num_segments(), 2);
    EXPECT_EQ(simulator_.use().reserved_bytes, 22 * kMiB);
}

TEST_F(DefaultPolicy, RequestsOfTenMiBGetASegmentOfTheirOwn) {
    EXPECT_EQ(size(allocate(11 * kMiB + 1)), 12 * kMiB) << "the rest is too small to be split";
    EXPECT_EQ(simulator_.use().reserved_bytes, 12 * kMiB);
}

TEST_F(DefaultPolicy, TheRestOfALargeBlockIsSplitOnlyAboveOneMiB) {
    EXPECT_EQ(size(allocate(11 * kMiB)), 12 * kMiB) << "a rest of exactly 1 MiB stays";
    EXPECT_EQ(size(allocate(11 * kMiB - 512)), 11 * kMiB - 512)
        << "a rest of 512 bytes more does not";
}

TEST_F(DefaultPolicy, TheRestOfASmallBlockIsSplitFrom512BytesOn) {
    const auto all_but_512 = allocate(kMiB);
    const auto rest = allocate(kMiB - 512);
    EXPECT_EQ(address(rest), address(all_but_512) + kMiB);
    EXPECT_EQ(size(rest), kMiB - 512);
    EXPECT_EQ(address(allocate(1)), address(rest) + kMiB - 512);
    EXPECT_EQ(simulator_.num_segments(), 1);
}

TEST_F(DefaultPolicy, TakesTheSmallestFreeBlockThatFits) {
    const auto a = allocate(4 * kMiB);
    allocate(2 * kMiB);
    const auto c = allocate(3 * kMiB);
    allocate(2 * kMiB);
    const int64_t small_hole = address(c);
    simulator_.free(a);
    simulator_.free(c);
    EXPECT_EQ(address(allocate(2 * kMiB + 512)), small_hole);
}

TEST_F(DefaultPolicy, TakesTheLowestAddressAmongEqualBlocks) {
    std::vector<BlockHandle> blocks;
    for (int i = 0; i < 6; ++i) blocks.push_back(allocate(3 * kMiB));
    const int64_t lower = address(blocks[1]);
    simulator_.free(blocks[3]);
    simulator_.free(blocks[1]);
    EXPECT_EQ(address(allocate(3 * kMiB)), lower);
}

TEST_F(DefaultPolicy, FreedNeighboursMerge) {
    const auto a = allocate(3 * kMiB);
    const auto b = allocate(3 * kMiB);
    const auto c = allocate(3 * kMiB);
    const int64_t start = address(a);
    simulator_.free(a);
    simulator_.free(c);
    tests::expect_sound(simulator_);
    simulator_.free(b);
    const auto segments = simulator_.segments();
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0].blocks.size(), 1u) << "everything is one free block again";
    EXPECT_EQ(address(allocate(19 * kMiB)), start);
}

TEST_F(DefaultPolicy, FreeingReturnsNothingToTheDriver) {
    simulator_.free(allocate(30 * kMiB));
    EXPECT_EQ(simulator_.use().reserved_bytes, 30 * kMiB);
    EXPECT_EQ(simulator_.use().allocated_bytes, 0);
    EXPECT_EQ(simulator_.use().inactive_split_bytes, 0) << "the segment is not cut";
}

TEST_F(DefaultPolicy, CountersAreThoseOfMemoryStats) {
    allocate(100);
    allocate(5 * kMiB);
    EXPECT_EQ(simulator_.use().requested_bytes, 5 * kMiB + 100);
    EXPECT_EQ(simulator_.use().allocated_bytes, 5 * kMiB + 512);
    EXPECT_EQ(simulator_.use().reserved_bytes, 22 * kMiB);
    EXPECT_EQ(simulator_.use().inactive_split_bytes, 22 * kMiB - 5 * kMiB - 512);
    simulator_.free(allocate(kMiB));
    EXPECT_EQ(simulator_.peak().allocated_bytes, 6 * kMiB + 512);
}

TEST_F(DefaultPolicy, AnExbibyteIsRefusedWithoutTrying) {
    EXPECT_FALSE(simulator_.allocate({int64_t{1} << 60}));
    EXPECT_EQ(simulator_.out_of_memory().requested_bytes, int64_t{1} << 60);
    EXPECT_EQ(simulator_.num_retries(), 0);
}

/// Goal: no sequence of calls breaks the invariants, under any settings.
TEST(Simulator, StaysSoundUnderRandomProgramsAndAllSettings) {
    for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:20",
                             "roundup_power2_divisions:[4:2,>:8]", "large_segment_size_mb:32",
                             "garbage_collection_threshold:0.5",
                             "expandable_segments:True,garbage_collection_threshold:0.4",
                             "expandable_segments:True,max_split_size_mb:24"}) {
        for (unsigned seed = 1; seed <= 6; ++seed) {
            tests::Recorder recorder(
                {.settings = *parse_alloc_conf(conf), .memory_limit_bytes = 256 * kMiB},
                300 * kMiB);
            tests::run_random(recorder, {.seed = seed,
                                         .num_steps = 1'500,
                                         .num_streams = 3,
                                         .share_streams = true,
                                         .empty_cache_every = 200});
            SCOPED_TRACE(std::string(conf) + ", seed " + std::to_string(seed));
            tests::expect_sound(recorder.simulator());
            EXPECT_LE(recorder.simulator().peak().reserved_bytes, 300 * kMiB);
        }
    }
}

}  // namespace
}  // namespace profiler
