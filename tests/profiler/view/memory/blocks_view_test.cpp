/// The layouts are checked on small traces by hand, and on large ones against what must hold for
/// any picture: blocks do not overlap, nothing is drawn twice, and there are few enough rectangles.
#include "profiler/view/memory/blocks_view.h"

#include "tests/profiler/view/block_traces.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace {

using namespace profiler;
using testing::HasSubstr;
using tests::LoadedBlocks;
using tests::TraceBuilder;

/// a (100 bytes) below b (200) below c (50); a is freed first, then c, then b.
Trace three_blocks() {
    TraceBuilder b;
    const auto first = b.allocate({.bytes = 100, .category = Category::kParameter, .name = "a"});
    b.wait(100'000);
    const auto second = b.allocate({.bytes = 200, .category = Category::kActivation, .name = "b"});
    b.wait(100'000);
    const auto third = b.allocate({.bytes = 50, .name = "c"});
    b.wait(100'000);
    b.free(first);
    b.wait(100'000);
    b.free(third);
    b.wait(100'000);
    b.free(second);
    b.wait(100'000);
    b.allocate({.bytes = 1, .name = "end"});
    return b.finish();
}

const BlockShape* shape_of(const BlocksView& view, Id<Allocation> id) {
    const auto found = std::find_if(view.shapes.begin(), view.shapes.end(),
                                    [&](const BlockShape& s) { return s.allocation == id; });
    return found == view.shapes.end() ? nullptr : &*found;
}

std::vector<BlockPiece> pieces_of(const BlocksView& view, Id<Allocation> id) {
    std::vector<BlockPiece> pieces;
    for (const BlockPiece& piece : view.pieces) {
        if (view.shapes[piece.shape].allocation == id) pieces.push_back(piece);
    }
    return pieces;
}

constexpr Id<Allocation> kA(std::size_t{0}), kB(std::size_t{1}), kC(std::size_t{2});

double alloc_ns(const LoadedBlocks& loaded, Id<Allocation> id) {
    return static_cast<double>(loaded.trace.allocations.get<&Allocation::alloc_ns>(id));
}
double free_ns(const LoadedBlocks& loaded, Id<Allocation> id) {
    return static_cast<double>(loaded.trace.allocations.get<&Allocation::free_requested_ns>(id));
}

TEST(BlocksView, ABlockFallsWhenOneBelowItIsFreed) {
    const LoadedBlocks loaded(three_blocks());
    const BlocksView view = build_blocks_view(loaded.request(600, 400));
    const double column_ns = 1100;
    const auto a = pieces_of(view, kA), b = pieces_of(view, kB), c = pieces_of(view, kC);
    ASSERT_EQ(a.size(), 1U);
    EXPECT_EQ(a[0].low_bytes, 0);
    EXPECT_EQ(a[0].start_ns, alloc_ns(loaded, kA)) << "edges of a block are exact";
    EXPECT_EQ(a[0].end_ns, free_ns(loaded, kA));
    ASSERT_EQ(b.size(), 2U);
    EXPECT_EQ(b[0].low_bytes, 100);
    EXPECT_EQ(b[1].low_bytes, 0) << "a is gone";
    EXPECT_EQ(b[0].start_ns, alloc_ns(loaded, kB));
    EXPECT_EQ(b[1].end_ns, free_ns(loaded, kB));
    EXPECT_EQ(b[0].end_ns, b[1].start_ns);
    EXPECT_NEAR(b[0].end_ns, free_ns(loaded, kA), column_ns) << "falls at the edge of a column";
    ASSERT_EQ(c.size(), 2U);
    EXPECT_EQ(c[0].low_bytes, 300);
    EXPECT_EQ(c[1].low_bytes, 200);
    EXPECT_EQ(view.bands.peaks.size(), 1U);
    EXPECT_EQ(view.max_bytes, 1.02 * 350);
}

TEST(BlocksView, TheNamesOfPhasesHaveRoomAboveTheHighestBlock) {
    const LoadedBlocks loaded(three_blocks());
    BlocksRequest request = loaded.request(600, 400);
    request.phase_strip_px = 100;
    EXPECT_DOUBLE_EQ(build_blocks_view(request).max_bytes, 1.02 * 350 / 0.75);
    request.phase_strip_px = 4000;  // taller than the plot
    EXPECT_DOUBLE_EQ(build_blocks_view(request).max_bytes, 1.02 * 350 / 0.5);
}

TEST(BlocksView, ShapesKnowTheirColourNameAndSize) {
    const LoadedBlocks loaded(three_blocks());
    const BlocksView view = build_blocks_view(loaded.request(600, 400));
    const BlockShape* b = shape_of(view, kB);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->label, "b  200 B");
    EXPECT_EQ(b->size_bytes, 200);
    EXPECT_EQ(view.groups[b->group].category, Category::kActivation);
    EXPECT_EQ(b->start_ns, alloc_ns(loaded, kB));
    EXPECT_EQ(b->end_ns, free_ns(loaded, kB));
    EXPECT_EQ(view.used_groups.size(), 3U) << "parameter, activation, temporary";
}

TEST(BlocksView, MergesWhatIsBelowAPixel) {
    TraceBuilder b;
    b.allocate({.bytes = 1000});
    for (int i = 0; i < 10; ++i) b.allocate({.bytes = 1, .category = Category::kGradient});
    b.allocate({.bytes = 500});
    b.wait(1'000'000);
    b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    const BlocksView view = build_blocks_view(loaded.request(200, 400));  // 4 bytes a pixel
    EXPECT_EQ(view.shapes.size(), 2U);
    EXPECT_THAT(view.merged_text,
                HasSubstr("merged: 11 blocks below a pixel, at most 11 B at a time"));
    const auto gap = std::find_if(view.merged.begin(), view.merged.end(),
                                  [](const MergedBlocks& m) { return m.count == 10; });
    ASSERT_NE(gap, view.merged.end());
    EXPECT_EQ(gap->low_bytes, 1000);
    EXPECT_EQ(gap->high_bytes, 1010);
    ASSERT_EQ(gap->parts.size(), 1U);
    EXPECT_EQ(view.groups[gap->parts[0].group].category, Category::kGradient);
    const auto last = pieces_of(view, Id<Allocation>(std::size_t{11}));
    ASSERT_FALSE(last.empty());
    EXPECT_EQ(last.back().low_bytes, 1010) << "it lies on the merged ones";
}

std::string parts_text(const BlocksView& view, const MergedBlocks& merged) {
    std::string text;
    for (const MergedPart& part : merged.parts) {
        text += fmt::format("{} {:.2f} ", view.groups[part.group].label, part.share);
    }
    return text;
}

TEST(BlocksView, MergedBlocksAreDividedAmongTheirGroups) {
    TraceBuilder b;
    b.allocate({.bytes = 4000});
    for (int i = 0; i < 3; ++i) b.allocate({.bytes = 1, .category = Category::kParameter});
    const auto freed = b.allocate({.bytes = 3, .category = Category::kActivation});
    b.allocate({.bytes = 1000});
    b.wait(1'000'000);
    b.free(freed);
    b.allocate({.bytes = 1, .category = Category::kActivation});
    b.wait(1'000'000);
    b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    BlocksRequest request = loaded.request(200, 400);  // 13 bytes a pixel
    const auto gaps_of = [&](const BlocksView& view) {
        std::vector<std::string> texts;
        for (const MergedBlocks& merged : view.merged) {
            if (merged.low_bytes == 4000) texts.push_back(parts_text(view, merged));
        }
        return texts;
    };
    BlocksView view = build_blocks_view(request);
    ASSERT_FALSE(gaps_of(view).empty());
    EXPECT_EQ(gaps_of(view).front(), "Parameters 0.50 Saved activations 0.50 ");
    EXPECT_EQ(view.used_groups.size(), 3U) << "temporaries, and both that are merged";
    request.coloring = BlockColoring::kSize;
    view = build_blocks_view(request);
    EXPECT_EQ(gaps_of(view).front(), "below 1 MiB 1.00 ");
    request.coloring = BlockColoring::kCategory;
    request.low_bytes = 3990;
    request.high_bytes = 4010;
    view = build_blocks_view(request);  // 20 pixels a byte
    EXPECT_TRUE(gaps_of(view).empty()) << "each is drawn by itself";
}

TEST(BlocksView, AShortBlockIsMergedAndStillKnown) {
    TraceBuilder b;
    b.allocate({.bytes = 1000});
    b.wait(1'000'000);
    const auto brief = b.allocate({.bytes = 900, .category = Category::kTemporary});
    b.free(brief);
    b.wait(1'000'000);
    b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    const BlocksView view = build_blocks_view(loaded.request(100, 400));
    EXPECT_EQ(shape_of(view, brief), nullptr);
    const auto merged = std::find_if(view.merged.begin(), view.merged.end(),
                                     [&](const MergedBlocks& m) { return m.allocation == brief; });
    ASSERT_NE(merged, view.merged.end()) << "the peak must not be lost";
    EXPECT_EQ(merged->high_bytes - merged->low_bytes, 900);
}

TEST(BlocksView, AWindowShowsWhatLivedBeforeIt) {
    const LoadedBlocks loaded(three_blocks());
    BlocksRequest request = loaded.request(300, 400);
    request.time.start_ns = 350'000;  // a is gone, b and c live
    request.time.end_ns = 380'000;
    const BlocksView view = build_blocks_view(request);
    EXPECT_EQ(shape_of(view, kA), nullptr);
    const auto b = pieces_of(view, kB), c = pieces_of(view, kC);
    ASSERT_EQ(b.size(), 1U);
    EXPECT_EQ(b[0].low_bytes, 0);
    EXPECT_LE(b[0].start_ns, 350'000);
    EXPECT_GE(b[0].end_ns, 380'000);
    ASSERT_EQ(c.size(), 1U);
    EXPECT_EQ(c[0].low_bytes, 200);
}

TEST(BlocksView, PartOfTheVerticalAxisShowsSmallerBlocks) {
    TraceBuilder b;
    b.allocate({.bytes = 1'000'000});
    for (int i = 0; i < 10; ++i) b.allocate({.bytes = 100});
    b.wait(1'000'000);
    b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    BlocksRequest request = loaded.request(200, 400);
    EXPECT_EQ(build_blocks_view(request).shapes.size(), 1U);
    request.low_bytes = 1'000'000;
    request.high_bytes = 1'001'100;
    EXPECT_EQ(build_blocks_view(request).pieces.size(), 10U) << "the large one is out of sight";
}

TEST(BlocksView, AddressOrderShowsOneRectangleABlock) {
    Trace trace = three_blocks();
    const auto place = [&](Id<Allocation> id, int64_t address, int64_t bytes) {
        trace.allocations.set<&Allocation::address>(id, address);
        trace.allocations.set<&Allocation::block_bytes>(id, bytes);
    };
    place(kA, 5000, 128);
    place(kB, 1000, 256);
    place(kC, 5128, 64);
    place(Id<Allocation>(std::size_t{3}), 5000, 1);
    const LoadedBlocks loaded(std::move(trace));
    BlocksRequest request = loaded.request(600, 400);
    request.order = BlockOrder::kAddress;
    const BlocksView view = build_blocks_view(request);
    EXPECT_EQ(view.max_bytes, 1.02 * (256 + 128 + 64));
    const auto a = pieces_of(view, kA), b = pieces_of(view, kB), c = pieces_of(view, kC);
    ASSERT_EQ(a.size(), 1U);
    ASSERT_EQ(b.size(), 1U);
    ASSERT_EQ(c.size(), 1U);
    EXPECT_EQ(a[0].low_bytes, 256);
    EXPECT_EQ(b[0].low_bytes, 0);
    EXPECT_EQ(c[0].low_bytes, 384);
    EXPECT_EQ(c[0].end_ns, free_ns(loaded, kC));
    EXPECT_EQ(shape_of(view, kB)->size_bytes, 256) << "as the allocator rounded it";
}

TEST(BlocksView, TheDifferenceIsHollowWhereBDoesNotHoldABlock) {
    const LoadedBlocks a(three_blocks());
    TraceBuilder builder;  // the same without a, with half of b, which it frees earlier
    builder.wait(TraceBuilder::kTickNs + 100'000);
    const auto half = builder.allocate({.bytes = 100, .name = "b"});
    builder.wait(50'000);
    builder.free(half);
    builder.allocate({.bytes = 50, .name = "c"});
    const LoadedBlocks b(builder.finish());
    BlocksRequest request = a.request(600, 400);
    request.time.steps.b = &b.index;
    request.time.alignment = std::make_shared<const Alignment>();
    request.difference = true;
    const BlocksView view = build_blocks_view(request);
    ASSERT_TRUE(view.difference);
    EXPECT_EQ(shape_of(view, kA)->kept, 0);
    EXPECT_EQ(shape_of(view, kB)->kept, 0.5);
    EXPECT_LT(shape_of(view, kB)->kept_end_ns, free_ns(a, kB));
    EXPECT_EQ(shape_of(view, kC)->kept, 1);
    const BlockReadout readout = read_block(request.time.steps, 0, kB);
    EXPECT_EQ(readout.title, "b");
    EXPECT_THAT(readout.rows, testing::Contains(testing::Pair("in B", HasSubstr("100 B"))));
    EXPECT_THAT(read_block(request.time.steps, 0, kA).rows,
                testing::Contains(testing::Pair("in B", "none")));
}

TEST(BlocksView, ColoursByLayerOpAndSize) {
    TraceBuilder b;
    const auto layer = b.module_path("encoder.layer.1.output", 1);
    b.allocate({.bytes = 4 << 20, .op = b.op("aten::mm", layer), .name = "x"});
    b.allocate({.bytes = 300 << 20, .op = b.op("aten::add"), .name = "y"});
    b.wait(1'000'000);
    b.allocate({.bytes = 1});
    const LoadedBlocks loaded(b.finish());
    const auto label = [&](BlockColoring coloring, Id<Allocation> id) {
        BlocksRequest request = loaded.request(300, 300);
        request.coloring = coloring;
        const BlocksView view = build_blocks_view(request);
        return view.groups[shape_of(view, id)->group].label;
    };
    EXPECT_EQ(label(BlockColoring::kLayer, kA), "layer 1");
    EXPECT_EQ(label(BlockColoring::kLayer, kB), "outside the layers");
    EXPECT_EQ(label(BlockColoring::kOp, kA), "aten::mm");
    EXPECT_EQ(label(BlockColoring::kOp, kB), "aten::add");
    EXPECT_EQ(label(BlockColoring::kSize, kA), "4 to 16 MiB");
    EXPECT_EQ(label(BlockColoring::kSize, kB), "256 MiB and more");
}

/// At a time inside the window, the rectangles of a stack must not overlap.
void expect_no_overlap(const BlocksView& view, double time_ns) {
    std::vector<std::pair<double, double>> spans;
    for (const BlockPiece& piece : view.pieces) {
        if (piece.start_ns > time_ns || piece.end_ns <= time_ns) continue;
        spans.emplace_back(
            piece.low_bytes,
            piece.low_bytes + static_cast<double>(view.shapes[piece.shape].size_bytes));
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
        ASSERT_LE(spans[i - 1].second, spans[i].first + view.pixel_bytes) << time_ns;
    }
}

TEST(BlocksView, ShapesOfAnyWindowDoNotOverlap) {
    const LoadedBlocks loaded(tests::make_synthetic_trace({.num_allocations = 20'000}));
    std::mt19937 random(5);
    std::uniform_real_distribution<double> share(0, 1);
    const BlocksRequest all = loaded.request(900, 400);
    for (int i = 0; i < 12; ++i) {
        BlocksRequest request = all;
        const double length_ns = all.time.end_ns - all.time.start_ns;
        request.time.start_ns += share(random) * length_ns;
        request.time.end_ns = request.time.start_ns + length_ns * std::pow(10, -3 * share(random));
        const BlocksView view = build_blocks_view(request);
        // In the middle of a column: at its edges blocks begin and fall.
        const double column_ns = std::ceil((request.time.end_ns - request.time.start_ns) / 900);
        for (int k = 0; k < 20; ++k) {
            const double column =
                std::floor((request.time.start_ns +
                            share(random) * (request.time.end_ns - request.time.start_ns)) /
                           column_ns);
            expect_no_overlap(view, (column + 0.5) * column_ns);
        }
    }
}

TEST(BlocksView, AMillionAllocationsGiveAsManyRectanglesAsThereIsRoomFor) {
    const LoadedBlocks loaded(tests::make_synthetic_trace({.num_allocations = 1'000'000}));
    for (const BlockOrder order : {BlockOrder::kStack, BlockOrder::kAddress}) {
        BlocksRequest request = loaded.request(1600, 400);
        request.order = order;
        for (const double zoom : {1.0, 30.0, 1000.0}) {
            request.time.end_ns =
                request.time.start_ns + (request.all.end_ns - request.all.start_ns) / zoom;
            const BlocksView view = build_blocks_view(request);
            EXPECT_LE(view.pieces.size() + view.merged.size(), BlocksView::kPiecesPerColumn * 1602);
            EXPECT_GT(view.pieces.size() + view.merged.size(), 100U);
        }
    }
}

TEST(BlocksView, IsEmptyForEmptyAndAbsurdRequests) {
    EXPECT_TRUE(build_blocks_view({}).shapes.empty());
    const LoadedBlocks loaded(three_blocks());
    BlocksRequest request = loaded.request(100, 100);
    request.time.end_ns = 1e300;
    EXPECT_TRUE(build_blocks_view(request).shapes.empty());
    request = loaded.request(0, 100);
    EXPECT_TRUE(build_blocks_view(request).shapes.empty());
    request = loaded.request(100, 0);
    EXPECT_TRUE(build_blocks_view(request).shapes.empty());
    request = loaded.request(100, 100);
    request.shown = 1;
    EXPECT_TRUE(build_blocks_view(request).shapes.empty());
    EXPECT_TRUE(read_block({}, 0, kA).rows.empty());
    EXPECT_TRUE(read_block(request.time.steps, 0, {}).rows.empty());
    EXPECT_EQ(family_of(loaded.index, {}), 0U);
    const LoadedBlocks empty((Trace()));
    EXPECT_TRUE(build_blocks_view(empty.request(100, 100)).shapes.empty());
}

TEST(BlocksView, SurvivesDamagedRows) {
    std::mt19937_64 random(11);
    Trace trace = tests::make_synthetic_trace({.num_allocations = 2'000});
    for (int i = 0; i < 400; ++i) {
        const Id<Allocation> id(random() % trace.allocations.size());
        const auto value = static_cast<int64_t>(random() % (uint64_t{1} << 40));
        switch (random() % 6) {
            case 0:
                trace.allocations.set<&Allocation::alloc_event>(id, value % 5000);
                break;
            case 1:
                trace.allocations.set<&Allocation::free_requested_event>(id, value % 5000 - 1);
                break;
            case 2:
                trace.allocations.set<&Allocation::address>(id, static_cast<int64_t>(random()));
                break;
            case 3:
                trace.allocations.set<&Allocation::requested_bytes>(id, value - 1);
                break;
            case 4:
                trace.allocations.set<&Allocation::alloc_ns>(id, -value);
                break;
            case 5:
                trace.allocations.set<&Allocation::op>(id, {});
                break;
        }
    }
    const LoadedBlocks loaded(std::move(trace));
    for (const BlockOrder order : {BlockOrder::kStack, BlockOrder::kAddress}) {
        for (const auto coloring : {BlockColoring::kCategory, BlockColoring::kLayer,
                                    BlockColoring::kOp, BlockColoring::kSize}) {
            BlocksRequest request = loaded.request(500, 300);
            request.order = order;
            request.coloring = coloring;
            const BlocksView view = build_blocks_view(request);
            for (const BlockPiece& piece : view.pieces) {
                ASSERT_LT(piece.shape, view.shapes.size());
                ASSERT_LE(piece.start_ns, piece.end_ns);
            }
        }
    }
}

}  // namespace
