#include "profiler/view/allocator/segment_map_view.h"

#include "profiler/view/memory/blocks_view.h"
#include "tests/profiler/view/block_traces.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace {

using namespace profiler;
using testing::HasSubstr;
using tests::LoadedBlocks;
using tests::TraceBuilder;
using State = SegmentPiece::State;

constexpr int64_t kBase = 0x1000;

void add_event(Trace& trace, AllocatorAction action, int64_t event, int64_t address,
               int64_t bytes) {
    trace.allocator_events.append({.action = action,
                                   .event = event,
                                   .time_ns = event * TraceBuilder::kTickNs,
                                   .address = address,
                                   .size_bytes = bytes});
}

void place(Trace& trace, Id<Allocation> id, int64_t address, int64_t bytes) {
    trace.allocations.set<&Allocation::address>(id, address);
    trace.allocations.set<&Allocation::block_bytes>(id, bytes);
}

/// A segment of 1000 bytes with blocks at 0 (300 bytes) and 500 (200), and one of 400 bytes that a
/// block fills. The first block is freed at the end.
Trace two_segments() {
    TraceBuilder b;
    const auto first = b.allocate({.bytes = 300, .category = Category::kActivation});
    const auto second = b.allocate({.bytes = 200});
    const auto third = b.allocate({.bytes = 400});
    b.wait(10'000);
    b.free(first);
    Trace trace = b.finish();
    place(trace, first, kBase, 300);
    place(trace, second, kBase + 500, 200);
    place(trace, third, kBase + 4000, 400);
    add_event(trace, AllocatorAction::kSegmentAlloc, 0, kBase, 1000);
    add_event(trace, AllocatorAction::kSegmentAlloc, 0, kBase + 4000, 400);
    return trace;
}

SegmentMapView map_at(const LoadedBlocks& loaded, int64_t moment_ns, int width_px = 1000) {
    return build_segment_map_view({.steps = {&loaded.index},
                                   .moment_ns = static_cast<double>(moment_ns),
                                   .width_px = width_px});
}

TEST(SegmentMapView, ShowsBlocksAndTheRoomBetweenThem) {
    const LoadedBlocks loaded(two_segments());
    const SegmentMapView view = map_at(loaded, loaded.index.blocks().time_ns(2));
    ASSERT_EQ(view.rows.size(), 2U);
    const SegmentRow& row = view.rows[0];
    ASSERT_EQ(row.pieces.size(), 4U);
    EXPECT_EQ(row.pieces[0].state, State::kUsed);
    EXPECT_EQ(row.pieces[0].category, Category::kActivation);
    EXPECT_EQ(row.pieces[1].state, State::kFree);
    EXPECT_EQ(row.pieces[1].start_bytes, 300);
    EXPECT_EQ(row.pieces[1].size_bytes, 200);
    EXPECT_EQ(row.pieces[3].size_bytes, 300);
    EXPECT_EQ(row.address_text, "0x1000");
    EXPECT_EQ(row.size_text, "1000 B");
    EXPECT_EQ(row.free_text, "500 B free in 2");
    EXPECT_TRUE(row.split);
    EXPECT_FALSE(view.rows[1].split);
    EXPECT_EQ(view.rows[1].free_text, "");
    EXPECT_EQ(view.reserved_bytes, 1400);
    EXPECT_EQ(view.largest_free_bytes, 300);
    EXPECT_EQ(view.summary,
              "500 B of 1.37 KiB is free, in 2 pieces; the largest has 300 B, so 40.0 % of the "
              "free memory cannot serve one large request.");
}

TEST(SegmentMapView, FollowsTheMoment) {
    const LoadedBlocks loaded(two_segments());
    EXPECT_EQ(map_at(loaded, loaded.index.blocks().time_ns(0)).free_bytes, 1100);
    EXPECT_EQ(map_at(loaded, loaded.index.blocks().time_ns(3)).free_bytes, 800)
        << "the first is freed";
    EXPECT_TRUE(map_at(loaded, -1'000'000).rows.empty());
    EXPECT_EQ(map_at(loaded, -1'000'000).summary,
              "The allocator holds no segments at this moment.");
}

TEST(SegmentMapView, ABlockWaitsUntilItsFreeIsCompleted) {
    Trace trace = two_segments();
    trace.allocations.set<&Allocation::free_completed_event>(Id<Allocation>(std::size_t{0}), 9);
    const LoadedBlocks loaded(std::move(trace));
    const SegmentMapView view = map_at(loaded, loaded.index.blocks().time_ns(3));
    EXPECT_EQ(view.rows[0].pieces[0].state, State::kPending);
    EXPECT_EQ(view.free_bytes, 500);
}

TEST(SegmentMapView, MergesWhatIsNarrowerThanAPixel) {
    TraceBuilder b;
    std::vector<Id<Allocation>> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(b.allocate({.bytes = 5}));
    Trace trace = b.finish();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        place(trace, blocks[i], kBase + 10 * static_cast<int64_t>(i), 5);
    }
    add_event(trace, AllocatorAction::kSegmentAlloc, 0, kBase, 1000);
    const LoadedBlocks loaded(std::move(trace));
    const SegmentMapView view = map_at(loaded, 1'000'000, 10);  // 100 bytes a pixel
    EXPECT_LE(view.rows[0].pieces.size(), 11U);
    int64_t bytes = 0, free_bytes = 0;
    for (const SegmentPiece& piece : view.rows[0].pieces) {
        EXPECT_EQ(piece.state, State::kMixed);
        bytes += piece.size_bytes;
        free_bytes += piece.free_bytes;
    }
    EXPECT_EQ(bytes, 1000);
    EXPECT_EQ(free_bytes, 500);
    EXPECT_EQ(view.rows[0].free_count, 100);
}

TEST(SegmentMapView, PagesThatTouchAreOneExpandableSegment) {
    TraceBuilder b;
    const auto block = b.allocate({.bytes = 100});
    Trace trace = b.finish();
    place(trace, block, kBase, 100);
    add_event(trace, AllocatorAction::kSegmentMap, 0, kBase, 200);
    add_event(trace, AllocatorAction::kSegmentMap, 0, kBase + 200, 200);
    add_event(trace, AllocatorAction::kSegmentMap, 0, kBase + 900, 100);
    const LoadedBlocks loaded(std::move(trace));
    const SegmentMapView view = map_at(loaded, 1'000'000);
    ASSERT_EQ(view.rows.size(), 2U);
    EXPECT_EQ(view.rows[0].size_bytes, 400);
    EXPECT_EQ(view.rows[0].kind_text, "expandable");
}

TEST(SegmentMapView, SaysWhenThereAreNoSegments) {
    TraceBuilder b;
    b.allocate({.bytes = 100});
    const LoadedBlocks loaded(b.finish());
    EXPECT_FALSE(map_at(loaded, 0).has_segments);
    EXPECT_FALSE(build_segment_map_view({}).has_segments);
}

TEST(SegmentMapView, SurvivesDamagedRows) {
    std::mt19937_64 random(7);
    Trace trace = two_segments();
    for (int i = 0; i < 50; ++i) {
        add_event(trace, static_cast<AllocatorAction>(random() % kAllocatorActionNames.size()),
                  static_cast<int64_t>(random() % 10), static_cast<int64_t>(random()),
                  static_cast<int64_t>(random() % (uint64_t{1} << 40)) - 1);
    }
    place(trace, Id<Allocation>(std::size_t{1}), INT64_MAX - 10, 200);
    place(trace, Id<Allocation>(std::size_t{2}), kBase + 10, 5000);  // overlaps the first
    const LoadedBlocks loaded(std::move(trace));
    for (int64_t ns = 0; ns < 20'000; ns += 1000) {
        for (const SegmentRow& row : map_at(loaded, ns).rows) {
            int64_t at = 0;
            for (const SegmentPiece& piece : row.pieces) {
                EXPECT_EQ(piece.start_bytes, at);
                at += piece.size_bytes;
            }
            EXPECT_EQ(at, row.size_bytes);
        }
    }
}

TEST(LiveBlocksView, ListsTheLargestFirst) {
    const LoadedBlocks loaded(two_segments());
    const LiveBlocksView view = build_live_blocks_view(
        {.steps = {&loaded.index},
         .moment_ns = static_cast<double>(loaded.index.blocks().time_ns(2))});
    ASSERT_EQ(view.rows.size(), 3U);
    EXPECT_EQ(view.rows[0].size_text, "400 B");
    EXPECT_EQ(view.rows[2].size_text, "200 B");
    EXPECT_EQ(view.total_text, "900 B in 3 blocks");
    EXPECT_EQ(view.rest_text, "");
    EXPECT_EQ(view.gone_text, "");
}

TEST(LiveBlocksView, SaysWhatTheOtherTraceDoesNotHold) {
    TraceBuilder first, second;
    first.allocate({.bytes = 64, .name = "mask"});
    first.allocate({.bytes = 32, .name = "query"});
    second.allocate({.bytes = 32, .name = "query"});
    const LoadedBlocks a(first.finish()), b(second.finish());
    const LiveBlocksView view =
        build_live_blocks_view({.steps = {&a.index, &b.index},
                                .alignment = std::make_shared<const Alignment>(),
                                .difference = true,
                                .moment_ns = 1e6});
    ASSERT_EQ(view.rows.size(), 2U);
    EXPECT_TRUE(view.rows[0].gone);
    EXPECT_FALSE(view.rows[1].gone);
    EXPECT_EQ(view.rows[1].other_text, "32 B");
    EXPECT_EQ(view.gone_text, "B does not hold 64 B of it");
}

TEST(LiveBlocksView, CutsLongLists) {
    TraceBuilder b;
    for (int i = 0; i < 1200; ++i) b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    const LiveBlocksView view =
        build_live_blocks_view({.steps = {&loaded.index}, .moment_ns = 1e12});
    EXPECT_EQ(view.rows.size(), LiveBlocksView::kMostRows);
    EXPECT_EQ(view.rest_text, "and 200 smaller blocks, 200 B");
    EXPECT_TRUE(build_live_blocks_view({}).rows.empty());
}

}  // namespace
