#include "profiler/addresses/driver_addresses.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBegin = uint64_t{1} << 40;
constexpr uint64_t kEnd = kBegin + 1024 * kMiB;

DriverAddresses addresses(SegmentPlacement placement = SegmentPlacement::kChunks) {
    return DriverAddresses(kBegin, kEnd - kBegin, placement);
}

/// As an H200 gave them: 20 MiB leave a hole of 12 in their chunk, which lies below the last one.
TEST(DriverAddresses, NewChunksLieBelowTheOthersAndHolesAreFilledFromTheLowest) {
    DriverAddresses space = addresses();
    EXPECT_EQ(space.take(20 * kMiB), kEnd - 32 * kMiB);
    EXPECT_EQ(space.take(20 * kMiB), kEnd - 64 * kMiB);
    EXPECT_EQ(space.take(12 * kMiB), kEnd - 44 * kMiB) << "the lower hole";
    EXPECT_EQ(space.take(12 * kMiB), kEnd - 12 * kMiB);
    EXPECT_EQ(space.take(96 * kMiB), kEnd - 160 * kMiB);
    EXPECT_EQ(space.take(2 * kMiB), kEnd - 192 * kMiB);
}

/// Two chunks of 48 MiB go and one of 96 comes, at the highest addresses that are free.
TEST(DriverAddresses, EmptyChunksAreGivenBack) {
    DriverAddresses space = addresses();
    const uint64_t first = space.take(48 * kMiB).value();
    const uint64_t second = space.take(48 * kMiB).value();
    const uint64_t third = space.take(48 * kMiB).value();
    EXPECT_EQ(third, kEnd - 192 * kMiB);
    space.give_back(second, 48 * kMiB);
    space.give_back(first, 48 * kMiB);
    EXPECT_EQ(space.take(96 * kMiB), kEnd - 96 * kMiB);
}

TEST(DriverAddresses, HolesGrowTogetherWithinTheirChunk) {
    DriverAddresses space = addresses();
    const uint64_t a = space.take(10 * kMiB).value();
    const uint64_t b = space.take(10 * kMiB).value();
    const uint64_t c = space.take(10 * kMiB).value();
    space.give_back(a, 10 * kMiB);
    space.give_back(b, 10 * kMiB);
    EXPECT_EQ(space.take(20 * kMiB), a);
    EXPECT_EQ(space.take(2 * kMiB), c + 10 * kMiB);
}

TEST(DriverAddresses, AscendWithoutChunks) {
    DriverAddresses space = addresses(SegmentPlacement::kAscending);
    EXPECT_EQ(space.take(4 * kMiB), kBegin);
    EXPECT_EQ(space.take(2 * kMiB), kBegin + 4 * kMiB);
    space.give_back(kBegin, 4 * kMiB);
    EXPECT_EQ(space.take(6 * kMiB), kBegin + 6 * kMiB);
    EXPECT_EQ(space.take(2 * kMiB), kBegin);
    space.give_back(kBegin, 2 * kMiB);
    space.give_back(kBegin + 4 * kMiB, 2 * kMiB);
    space.give_back(kBegin + 6 * kMiB, 6 * kMiB);
    EXPECT_EQ(space.take(8 * kMiB), kBegin) << "also after all was given back";
}

/// Two full chunks side by side: a hole at the border stays within its own.
TEST(DriverAddresses, HolesDoNotCrossTheBorderOfAChunk) {
    DriverAddresses space = addresses();
    const uint64_t upper = space.take(20 * kMiB).value();
    space.take(12 * kMiB);
    space.take(20 * kMiB);
    const uint64_t end_of_lower = space.take(12 * kMiB).value();
    ASSERT_EQ(end_of_lower + 12 * kMiB, upper);
    space.give_back(end_of_lower, 12 * kMiB);
    space.give_back(upper, 20 * kMiB);
    EXPECT_EQ(space.take(22 * kMiB), kEnd - 96 * kMiB);
    EXPECT_EQ(space.take(20 * kMiB), upper);
}

TEST(DriverAddresses, AreNotEndless) {
    DriverAddresses space = addresses();
    EXPECT_FALSE(space.take(1025 * kMiB));
    EXPECT_TRUE(space.take(1024 * kMiB));
    EXPECT_FALSE(space.take(2 * kMiB));
    EXPECT_FALSE(space.take_aligned(2 * kMiB, 2 * kMiB));
}

TEST(DriverAddresses, AlignWhatIsReserved) {
    DriverAddresses space = addresses();
    space.take(2 * kMiB);
    const uint64_t reserved = space.take_aligned(100 * kMiB, 256 * kMiB).value();
    EXPECT_EQ(reserved % (256 * kMiB), 0U);
    space.give_back(reserved, 100 * kMiB);
    EXPECT_EQ(space.take_aligned(100 * kMiB, 256 * kMiB), reserved);
}

}  // namespace
}  // namespace profiler
