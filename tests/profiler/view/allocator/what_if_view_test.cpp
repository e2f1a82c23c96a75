#include "profiler/view/allocator/what_if_view.h"

#include "profiler/view/allocator/segment_map_view.h"
#include "tests/profiler/view/block_traces.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using tests::LoadedBlocks;
using tests::TraceBuilder;
using Trend = WhatIfView::Trend;

AllocatorSettings settings_from(std::string_view text) { return parse_alloc_conf(text).value(); }

/// 30 MiB stay, 30 MiB are freed, then 40 MiB are asked for: the freed ones are too small for it.
/// An expandable segment grows by what is missing.
Trace a_piece_too_small() {
    TraceBuilder b;
    b.allocate({.bytes = 30 * kMiB});
    const auto freed = b.allocate({.bytes = 30 * kMiB});
    b.free(freed);
    b.allocate({.bytes = 40 * kMiB, .op = b.op("aten::bmm", b.module_path("encoder.layer.3"))});
    return b.finish();
}

class WhatIf : public testing::Test {
protected:
    models::Result<WhatIfView> build(const WhatIfChoice& choice, bool tries_all = false) const {
        return build_what_if_view({&loaded.index, choice, tries_all}, [](double) { return true; });
    }

    SegmentMapView map_at_end(const WhatIfView& view, std::optional<int64_t> address = {}) const {
        return build_segment_map_view({.steps = {&loaded.index},
                                       .moment_ns = 1e9,
                                       .width_px = 1000,
                                       .layout = view.layout,
                                       .address = address});
    }

    const LoadedBlocks loaded{a_piece_too_small()};
};

const WhatIfView::Figure& figure(const WhatIfView& view, const std::string& label) {
    return *std::find_if(view.figures.begin(), view.figures.end(),
                         [&](const auto& one) { return one.label == label; });
}

TEST_F(WhatIf, SetsTheFiguresBesideThoseOfTheTrace) {
    const auto view = build({settings_from("expandable_segments:True"), {}}).value();
    EXPECT_EQ(view.recorded_settings, "default settings");
    EXPECT_EQ(figure(view, "Peak reserved").recorded_text, "100 MiB");
    EXPECT_EQ(figure(view, "Peak reserved").chosen_text, "80.0 MiB");
    EXPECT_EQ(figure(view, "Peak reserved").trend, Trend::kBetter);
    EXPECT_EQ(figure(view, "Peak allocated").recorded_text, "70.0 MiB");
    EXPECT_EQ(figure(view, "Peak allocated").trend, Trend::kSame);
    EXPECT_EQ(figure(view, "Fragmentation").recorded_text, "30.0 MiB");
    EXPECT_EQ(figure(view, "Fragmentation").chosen_text, "10.0 MiB");
    EXPECT_EQ(figure(view, "Segments").recorded_text, "3");
    EXPECT_EQ(figure(view, "Segments").chosen_text, "1");
    EXPECT_EQ(view.fit_text, "") << "no limit was chosen";
}

TEST_F(WhatIf, SaysWhereMemoryRunsOut) {
    const auto view = build({{}, 65 * kMiB}).value();
    EXPECT_FALSE(view.fits);
    EXPECT_EQ(view.fit_text,
              "Runs out of memory at aten::bmm in encoder.layer.3: 40.0 MiB needed a segment of "
              "40.0 MiB, but 35.0 MiB were free. 2 of 3 allocations were made.");
    ASSERT_TRUE(view.out_of_memory_ns);
    const auto with_room = build({{}, 80 * kMiB});
    EXPECT_EQ(with_room->fit_text, "Fits in 80.0 MiB, with 10.0 MiB to spare.");
    EXPECT_EQ(figure(*with_room, "Retries").chosen_text, "1") << "the freed block was given back";
}

TEST_F(WhatIf, ShowsTheReplayedSegments) {
    const SegmentMapView one = map_at_end(*build({settings_from("expandable_segments:True"), {}}));
    ASSERT_EQ(one.rows.size(), 1U);
    EXPECT_EQ(one.rows[0].kind_text, "expandable");
    EXPECT_EQ(one.reserved_bytes, 80 * kMiB);
    EXPECT_EQ(one.free_bytes, 10 * kMiB);
    const SegmentMapView three = map_at_end(*build({}));
    ASSERT_EQ(three.rows.size(), 3U);
    EXPECT_EQ(three.free_bytes, 30 * kMiB);
}

TEST_F(WhatIf, ShowsNoBlockThatWasNeverPlaced) {
    const SegmentMapView map = map_at_end(*build({{}, 65 * kMiB}));
    int64_t used_bytes = 0;
    for (const SegmentRow& row : map.rows) used_bytes += row.size_bytes - row.free_bytes;
    EXPECT_EQ(used_bytes, 30 * kMiB);
    EXPECT_TRUE(map.summary.starts_with("Right before memory ran out: ")) << map.summary;
}

TEST_F(WhatIf, SaysWhyASegmentWasTaken) {
    const auto plain = build({});
    const SegmentMapView newest = map_at_end(*plain);
    EXPECT_EQ(newest.cause_row, 0U) << "the driver takes addresses from above";
    EXPECT_TRUE(newest.cause_title.ends_with(", the newest")) << newest.cause_title;
    EXPECT_EQ(newest.cause_text,
              "aten::bmm in encoder.layer.3 asked for 40.0 MiB; 30.0 MiB was free for large "
              "blocks, in one piece.");
    EXPECT_TRUE(newest.cause_request.valid());
    const SegmentMapView first = map_at_end(*plain, newest.rows[2].address);
    EXPECT_EQ(first.cause_row, 2U);
    EXPECT_EQ(first.cause_text, "A request asked for 30.0 MiB; nothing was free for large blocks.");
}

TEST_F(WhatIf, TriesAllSettingsBestFirst) {
    const auto view = build({}, true);
    ASSERT_GT(view->tried.size(), 4U);
    EXPECT_TRUE(view->tried[0].settings.expandable_segments);
    EXPECT_EQ(view->tried[0].change_text, "-20.0 MiB");
    const auto limited = build({{}, 65 * kMiB}, true);
    EXPECT_GT(limited->tried.size(), view->tried.size()) << "garbage collection needs a limit";
    EXPECT_FALSE(limited->tried.back().fits);
    const DataTable table = tried_data(*limited);
    EXPECT_FALSE(table.rows.back()[1].has_value()) << "there is no peak where memory ran out";
    EXPECT_EQ(table.rows.back()[3], Cell(false));
}

TEST_F(WhatIf, ExportsNumbersUnderNamesWithUnits) {
    const auto view = build({settings_from("expandable_segments:True"), {}}, true);
    const DataTable figures = what_if_data(*view);
    EXPECT_EQ(figures.rows[0], (std::vector<Cell>{"peak_reserved_bytes", 100 * kMiB, 80 * kMiB}));
    const DataTable tried = tried_data(*view);
    EXPECT_EQ(tried.columns[1], "peak_reserved_bytes");
    EXPECT_EQ(tried.rows[0][1], Cell(80 * kMiB));
    EXPECT_EQ(tried.rows[0][2], Cell(-20 * kMiB));
}

TEST_F(WhatIf, AsksForWhatTheProgramWasRefused) {
    TraceBuilder b;
    b.allocate({.bytes = 30 * kMiB});
    b.free(b.allocate({.bytes = 30 * kMiB}));
    b.trace().failures.append({.device = Id<Device>(0),
                               .event = b.next_event(),
                               .requested_bytes = 40 * kMiB,
                               .limit_bytes = 65 * kMiB});
    const LoadedBlocks failed(b.finish());
    const auto view_with = [&](std::optional<int64_t> limit_bytes) {
        return build_what_if_view({&failed.index, {{}, limit_bytes}, true},
                                  [](double) { return true; })
            .value();
    };
    const WhatIfView view = view_with({});
    EXPECT_FALSE(view.fits) << "below the recorded limit";
    EXPECT_EQ(view.fit_text,
              "Runs out of memory at the request that the program was refused: 40.0 MiB needed a "
              "segment of 40.0 MiB, but 35.0 MiB were free. 2 of 3 allocations were made.");
    EXPECT_EQ(figure(view, "Peak reserved").recorded_text, "60.0 MiB");
    EXPECT_EQ(figure(view, "Peak reserved").trend, Trend::kSame);
    EXPECT_EQ(view_with(80 * kMiB).fit_text, "Fits in 80.0 MiB, with 10.0 MiB to spare.");
}

TEST_F(WhatIf, StopsWhenItIsCancelled) {
    EXPECT_FALSE(build_what_if_view({&loaded.index, {}, true}, [](double) { return false; }));
    const LoadedBlocks nothing(TraceBuilder().finish());
    EXPECT_FALSE(build_what_if_view({&nothing.index, {}, false}, [](double) { return true; }));
}

TEST_F(WhatIf, WritesTheLineToCopy) {
    EXPECT_EQ(alloc_conf_line(settings_from("max_split_size_mb:128")),
              "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128");
    EXPECT_EQ(alloc_conf_line({}), "PYTORCH_CUDA_ALLOC_CONF=");
}

TEST_F(WhatIf, NamesWhatHasNoEffect) {
    const auto view = build({settings_from("garbage_collection_threshold:0.8"), {}});
    ASSERT_EQ(view->notes.size(), 2U);
    EXPECT_EQ(view->notes[1], "garbage_collection_threshold has no effect without a memory limit.");
}

}  // namespace
