#include "profiler/allocator/mapped_ranges.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

RecordedSegment range(int64_t address, int64_t size_bytes, int64_t stream = 0) {
    return {.address = address, .size_bytes = size_bytes, .stream = stream, .is_expandable = true};
}

TEST(MappedRanges, NeighboursOfOneOwnerJoin) {
    MappedRanges ranges;
    ranges.add(range(20, 10));
    ranges.add(range(0, 10));
    ranges.add(range(10, 10));
    ASSERT_EQ(ranges.ranges().size(), 1u);
    EXPECT_EQ(ranges.ranges()[0].size_bytes, 30);
}

TEST(MappedRanges, NeighboursOfOtherStreamsDoNot) {
    MappedRanges ranges;
    ranges.add(range(0, 10, 1));
    ranges.add(range(10, 10, 2));
    EXPECT_EQ(ranges.ranges().size(), 2u);
}

TEST(MappedRanges, TakingOutTheMiddleLeavesBothEnds) {
    MappedRanges ranges;
    ranges.add(range(0, 30));
    EXPECT_TRUE(ranges.remove(range(10, 10)));
    EXPECT_EQ(ranges.ranges(), (std::vector{range(0, 10), range(20, 10)}));
}

TEST(MappedRanges, WhatIsNotMappedCannotBeTakenOut) {
    MappedRanges ranges;
    ranges.add(range(10, 10));
    EXPECT_FALSE(ranges.remove(range(0, 5)));
    EXPECT_FALSE(ranges.remove(range(15, 10)));
    EXPECT_EQ(ranges.ranges(), std::vector{range(10, 10)});
}

}  // namespace
}  // namespace profiler
