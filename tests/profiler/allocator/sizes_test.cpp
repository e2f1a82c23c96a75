#include "profiler/allocator/sizes.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

constexpr int64_t kKiB = 1024;

TEST(RoundSize, TakesMultiplesOf512ByDefault) {
    const AllocatorSettings settings;
    for (const auto& [asked, block] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 512},
                                                  {511, 512},
                                                  {512, 512},
                                                  {513, 1024},
                                                  {kMiB - 1, kMiB},
                                                  {kMiB + 1, kMiB + 512}}) {
        EXPECT_EQ(round_size(asked, settings), block) << asked;
    }
}

TEST(RoundSize, DividesPowersOfTwoWhereAsked) {
    const AllocatorSettings settings = *parse_alloc_conf("roundup_power2_divisions:4");
    for (const auto& [asked, block] : std::vector<std::pair<int64_t, int64_t>>{
             {1200 * kKiB, 1280 * kKiB},  // a step between 1024 and 2048
             {1280 * kKiB, 1280 * kKiB},
             {1800 * kKiB, 2048 * kKiB},
             {1024 * kKiB, 1024 * kKiB},  // a power of two
             {2049, 2560},
             {2048, 2048},  // not above 512 * divisions
             {1500, 1536}}) {
        EXPECT_EQ(round_size(asked, settings), block) << asked;
    }
}

TEST(RoundSize, UsesTheDivisionsOfItsInterval) {
    const AllocatorSettings settings = *parse_alloc_conf("roundup_power2_divisions:[2:2,4:0,>:8]");
    EXPECT_EQ(round_size(1200 * kKiB, settings), 1536 * kKiB);  // 1 MiB and below: 2, like 2 MiB
    EXPECT_EQ(round_size(3 * kMiB - 700, settings), 3 * kMiB);  // 2 MiB: 2
    EXPECT_EQ(round_size(5 * kMiB + 1, settings), 5 * kMiB + 512);  // 4 MiB: off
    EXPECT_EQ(round_size(9 * kMiB + 1, settings), 10 * kMiB);       // 8 MiB: 8
    EXPECT_EQ(round_size(70'000 * kMiB, settings),
              73'728 * kMiB);  // above the table: the last interval
}

TEST(RoundSize, OneDivisionIsNone) {
    const AllocatorSettings settings = *parse_alloc_conf("roundup_power2_divisions:1");
    EXPECT_EQ(round_size(1200 * kKiB + 1, settings), 1200 * kKiB + 512);
}

TEST(SegmentSize, FollowsTheSizeOfTheBlock) {
    const AllocatorSettings settings;
    EXPECT_EQ(segment_bytes_for(512, settings), 2 * kMiB);
    EXPECT_EQ(segment_bytes_for(kMiB, settings), 2 * kMiB);
    EXPECT_EQ(segment_bytes_for(kMiB + 512, settings), 20 * kMiB);
    EXPECT_EQ(segment_bytes_for(10 * kMiB - 512, settings), 20 * kMiB);
    EXPECT_EQ(segment_bytes_for(10 * kMiB, settings), 10 * kMiB);
    EXPECT_EQ(segment_bytes_for(10 * kMiB + 512, settings), 12 * kMiB);
}

TEST(SegmentSize, OfMiddleRequestsIsASetting) {
    const AllocatorSettings settings = *parse_alloc_conf("large_segment_size_mb:64");
    EXPECT_EQ(segment_bytes_for(2 * kMiB, settings), 64 * kMiB);
    EXPECT_EQ(segment_bytes_for(12 * kMiB, settings), 12 * kMiB);
    EXPECT_EQ(page_bytes_of(false, settings), 64 * kMiB);
    EXPECT_EQ(page_bytes_of(true, settings), 2 * kMiB);
}

}  // namespace
}  // namespace profiler
