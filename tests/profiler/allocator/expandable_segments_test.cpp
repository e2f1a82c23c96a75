#include "tests/profiler/allocator/configured_simulator.h"

#include <gtest/gtest.h>

/// Expandable segments. These rules come from source and no recording confirms them
/// (docs/dev/allocator.md).
namespace profiler {
namespace {

class ExpandableSegments : public tests::ConfiguredSimulator {
protected:
    void SetUp() override { use("expandable_segments:True"); }
};

TEST_F(ExpandableSegments, GrowPageByPageAtTheirEnd) {
    const auto a = allocate(30 * kMiB);
    EXPECT_EQ(reserved(), 40 * kMiB) << "pages of 20 MiB";
    const auto b = allocate(30 * kMiB);
    EXPECT_EQ(reserved(), 60 * kMiB) << "the free 10 MiB are used";
    EXPECT_EQ(address(b), address(a) + 30 * kMiB);
    EXPECT_EQ(simulator_->num_segments(), 1);
}

TEST_F(ExpandableSegments, OfTheSmallPoolHavePagesOfTwoMiB) {
    const auto a = allocate(kMiB);
    const auto b = allocate(kMiB);
    const auto c = allocate(512);
    EXPECT_EQ(reserved(), 4 * kMiB);
    EXPECT_EQ(address(c), address(b) + kMiB);
    EXPECT_EQ(address(b), address(a) + kMiB);
}

TEST_F(ExpandableSegments, AreOnePerStreamAndPool) {
    allocate(2 * kMiB, 0);
    allocate(2 * kMiB, 1);
    allocate(512, 0);
    EXPECT_EQ(simulator_->num_segments(), 3);
}

TEST_F(ExpandableSegments, SplitFrom512BytesOnInBothPools) {
    EXPECT_EQ(size(allocate(20 * kMiB - 512)), 20 * kMiB - 512);
    EXPECT_EQ(size(allocate(512 + kMiB)), kMiB + 512);
    EXPECT_EQ(reserved(), 40 * kMiB);
}

TEST_F(ExpandableSegments, LogEachMappingAndCountNoInactiveSplits) {
    const auto a = allocate(30 * kMiB);
    simulator_->take_events();
    simulator_->free(allocate(25 * kMiB));
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].action, RecordedAction::kSegmentMap);
    EXPECT_EQ(events[0].address, address(a) + 40 * kMiB);
    EXPECT_EQ(events[0].size_bytes, 20 * kMiB);
    EXPECT_EQ(simulator_->use().inactive_split_bytes, 0);
}

TEST_F(ExpandableSegments, TwoHolesWithAnUnmappedOneBetweenAreFilledWithTwoMappings) {
    // Pages: used | free | free | free | used; the release unmaps the three in the middle.
    std::vector<BlockHandle> pages;
    for (int i = 0; i < 5; ++i) pages.push_back(allocate(20 * kMiB));
    const int64_t second = address(pages[1]);
    for (int i = 1; i < 4; ++i) simulator_->free(pages[static_cast<std::size_t>(i)]);
    simulator_->empty_cache();
    EXPECT_EQ(reserved(), 40 * kMiB);
    simulator_->take_events();
    const auto whole = allocate(60 * kMiB);
    EXPECT_EQ(address(whole), second) << "the lowest place with enough address space";
    EXPECT_EQ(reserved(), 100 * kMiB);
    EXPECT_EQ(simulator_->take_events().size(), 1u);
}

TEST_F(ExpandableSegments, AFreePartBeforeUnmappedPagesIsUsedToo) {
    const auto a = allocate(30 * kMiB);
    const auto b = allocate(10 * kMiB);
    const int64_t b_place = address(b);
    simulator_->free(b);
    simulator_->take_events();
    EXPECT_EQ(address(allocate(35 * kMiB)), b_place);
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].size_bytes, 40 * kMiB) << "25 MiB were missing";
    EXPECT_EQ(size(a), 30 * kMiB);
}

TEST_F(ExpandableSegments, ReleasingUnmapsTheWholePagesOfFreeBlocks) {
    const auto a = allocate(30 * kMiB);
    const auto b = allocate(50 * kMiB);
    allocate(10 * kMiB);
    const int64_t b_place = address(b);
    simulator_->free(b);
    simulator_->take_events();
    simulator_->empty_cache();
    const auto events = simulator_->take_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].action, RecordedAction::kSegmentUnmap);
    EXPECT_EQ(events[0].address, b_place + 10 * kMiB) << "the page that a shares stays";
    EXPECT_EQ(events[0].size_bytes, 40 * kMiB);
    EXPECT_EQ(reserved(), 60 * kMiB);
    EXPECT_EQ(simulator_->segments().size(), 2u) << "one per mapped range";
    EXPECT_EQ(size(a), 30 * kMiB);
}

TEST_F(ExpandableSegments, ThatHoldNothingGiveTheirAddressSpaceBack) {
    simulator_->free(allocate(30 * kMiB));
    EXPECT_EQ(simulator_->num_segments(), 1);
    simulator_->empty_cache();
    EXPECT_EQ(simulator_->num_segments(), 0);
    EXPECT_EQ(reserved(), 0);
    EXPECT_NE(allocate(2 * kMiB), kNoBlock);
}

TEST_F(ExpandableSegments, BestFitCountsTheAddressSpaceBehindABlock) {
    // The free block at the end can grow without bound; the larger one in the middle cannot.
    const auto a = allocate(14 * kMiB);
    const auto b = allocate(2 * kMiB);
    allocate(10 * kMiB);  // up to 26 of 40 MiB
    const int64_t a_place = address(a);
    simulator_->free(a);
    EXPECT_EQ(address(allocate(12 * kMiB)), a_place) << "14 MiB, though 14 at the end fit as well";
    EXPECT_EQ(size(b), 2 * kMiB);
}

TEST_F(ExpandableSegments, TheLimitIsComparedWithThePlainSegment) {
    use("expandable_segments:True", 50 * kMiB);
    allocate(35 * kMiB);
    // 5 MiB are free at the end. With one more page of 20 MiB the total would be 60.
    EXPECT_EQ(allocate(6 * kMiB), kNoBlock);
    EXPECT_NE(allocate(5 * kMiB), kNoBlock);
}

TEST_F(ExpandableSegments, WhatWasMappedBeforeTheDeviceWasFullStaysFree) {
    use("expandable_segments:True", {}, 70 * kMiB);
    std::vector<BlockHandle> pages;
    for (int i = 0; i < 3; ++i) pages.push_back(allocate(20 * kMiB));
    simulator_->free(pages[1]);
    simulator_->empty_cache();
    EXPECT_EQ(reserved(), 40 * kMiB);
    EXPECT_EQ(allocate(40 * kMiB), kNoBlock) << "needs 40 at the end, 30 are left";
    EXPECT_EQ(reserved(), 40 * kMiB) << "one mapping is all or nothing";
    EXPECT_NE(allocate(20 * kMiB), kNoBlock);
}

TEST_F(ExpandableSegments, AreSkippedOnceTheOptionIsOff) {
    const auto a = allocate(2 * kMiB);
    const auto segments = simulator_->segments();
    ModelDriver driver;
    Simulator plain({}, driver);
    plain.load(segments);
    EXPECT_EQ(plain.use().reserved_bytes, 20 * kMiB);
    const auto b = plain.allocate({2 * kMiB});
    EXPECT_EQ(plain.use().reserved_bytes, 40 * kMiB) << "the free rest of the old one is not used";
    EXPECT_FALSE(plain.block(*b).is_expandable());
    EXPECT_EQ(size(a), 2 * kMiB);
}

TEST_F(ExpandableSegments, PagesFollowTheLargeSegmentSize) {
    use("expandable_segments:True,large_segment_size_mb:64");
    allocate(2 * kMiB);
    EXPECT_EQ(reserved(), 64 * kMiB);
}

TEST_F(ExpandableSegments, KeepReservedMemoryLowerWhereSizesGrow) {
    // The purpose of the option: batches that grow a little every time.
    const auto peak = [&](std::string_view conf) {
        use(conf);
        for (int64_t step = 0; step < 20; ++step) {
            std::vector<BlockHandle> blocks;
            for (int i = 0; i < 8; ++i) blocks.push_back(allocate((20 + 3 * step) * kMiB));
            for (const auto block : blocks) simulator_->free(block);
        }
        return reserved();
    };
    EXPECT_LT(2 * peak("expandable_segments:True"), peak(""));
}

}  // namespace
}  // namespace profiler
