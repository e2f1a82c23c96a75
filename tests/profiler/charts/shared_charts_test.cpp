// Goal: what the window and files draw alike says where its parts lie, so that a mouse finds them.
// Method: places against values; words of the SVG. How it looks is checked by eye.
#include "profiler/charts/bars.h"
#include "profiler/charts/document.h"
#include "profiler/charts/roofline_chart.h"
#include "profiler/charts/svg_canvas.h"
#include "profiler/charts/throughput_chart.h"
#include "tests/profiler/charts/sample_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::HasSubstr;
using testing::Not;

/// What `draw` writes as SVG.
std::string words_of(const Draw& draw) {
    std::string svg;
    with_measuring_canvas([&](Canvas& measuring) {
        SvgCanvas canvas(800, 400, measuring);
        draw(canvas);
        svg = std::move(canvas).finish();
    });
    return svg;
}

void expect_rect(const Rect& rect, double x, double y, double width, double height) {
    EXPECT_DOUBLE_EQ(rect.x, x);
    EXPECT_DOUBLE_EQ(rect.y, y);
    EXPECT_DOUBLE_EQ(rect.width, width);
    EXPECT_DOUBLE_EQ(rect.height, height);
}

TEST(BarSlot, GrowsToTheRightOrUp) {
    BarSlot slot{.area = {10, 20, 100, 40}, .end = 50};
    expect_rect(slot.bar(25), 10, 20, 50, 40);
    expect_rect(slot.part(25, 50), 60, 20, 50, 40);
    expect_rect(slot.thinner(0.25).bar(50), 10, 30, 100, 20);
    slot.grows_up = true;
    expect_rect(slot.bar(25), 10, 40, 100, 20);
    expect_rect(slot.part(25, 50), 10, 20, 100, 20);
    expect_rect(slot.thinner(0.25).bar(50), 35, 20, 50, 40);
}

TEST(FitBarAxis, LeavesRoomForEachLabel) {
    const std::vector<LabelledBar> bars{{100, 40}, {90, 120}, {1, 500}};
    const double end = fit_bar_axis(bars, 200, 10, 0.2);
    EXPECT_LE(100 / end * 200 + 10 + 40, 200 + 1e-9);
    EXPECT_LE(90 / end * 200 + 10 + 120, 200 + 1e-9);
    EXPECT_EQ(fit_bar_axis({}, 200, 10, 0.2), 1);
}

TEST(DrawStack, WritesTheBytesOfWhatIsPickedAlone) {
    const std::vector<StackSegment> stack{{Category::kParameter, 0, 1 << 20, "1.00 MiB"},
                                          {Category::kActivation, 1 << 20, 3 << 20, "3.00 MiB"}};
    const BarSlot slot{.area = {0, 0, 400, 30}, .end = 4 << 20};
    const auto words = [&](const StackStyle& style) {
        return words_of([&](Canvas& canvas) {
            draw_stack(canvas, light_theme(), stack, segment_rects(slot, stack), style);
        });
    };
    EXPECT_THAT(words({}), testing::AllOf(HasSubstr("1.00 MiB"), HasSubstr("3.00 MiB")));
    EXPECT_THAT(words({.picked = Category::kActivation}),
                testing::AllOf(Not(HasSubstr("1.00 MiB")), HasSubstr("3.00 MiB")));
    EXPECT_NE(words({}), words({.is_predicted = true}));
}

TEST(DrawThroughput, ReturnsAMarkForEachPointOfASweep) {
    const CompareView view = build_compare_view(tests::sample_comparison(3));
    std::size_t points = 0;
    for (const CompareColumn& column : view.columns) {
        points += column.curve.size() + (column.out_of_memory_batch ? 1 : 0);
    }
    const Rect plot{50, 10, 600, 300};
    std::vector<ThroughputMark> marks;
    const std::string svg = words_of(
        [&](Canvas& canvas) { marks = draw_throughput(canvas, light_theme(), view, {}, plot); });
    ASSERT_EQ(marks.size(), points);
    for (const ThroughputMark& mark : marks) {
        EXPECT_TRUE(plot.contains(mark.at));
        EXPECT_TRUE(mark.covers(mark.at));
        EXPECT_FALSE(mark.covers({mark.at.x + 20, mark.at.y}));
        EXPECT_FALSE(mark.text.empty());
    }
    EXPECT_THAT(svg, HasSubstr(">batch size"));
    EXPECT_TRUE(has_throughput(view, {}));
    EXPECT_FALSE(has_throughput(build_compare_view(tests::sample_without_sweep()), {}));
}

/// Dots of one op each: a large one, and a small one in the same place.
MovementView small_roofline() {
    MovementView view;
    view.peaks = {.name = "card", .flop_per_s = 1e14, .bytes_per_s = 1e12};
    view.ridge = 100;
    MovementTrace trace;
    for (const char* name : {"large", "small"}) {
        MovementViewRow row;
        row.label = name;
        trace.rows.push_back(row);
    }
    trace.dots = {{.row = 0, .x = 1, .y = 1e11, .radius = 1},
                  {.row = 1, .x = 1, .y = 1e11, .radius = 0.1}};
    view.traces = {trace};
    return view;
}

TEST(RooflineMap, FindsTheSmallestDotAndTheDotsOfARectangle) {
    const MovementView view = small_roofline();
    const RooflineMap map(view, {100, 50, 500, 300});
    const Point at = map.at(view.traces[0].dots[0]);
    EXPECT_EQ(map.dot_at(at, 2), (RooflineDotId{0, 1}));
    const double edge = map.radius_of(view.traces[0].dots[0]);
    EXPECT_EQ(map.dot_at({at.x + edge, at.y}, 2), (RooflineDotId{0, 0}));
    EXPECT_FALSE(map.dot_at({at.x + 40, at.y}, 2));
    const RooflineBox box = map.box_between({at.x + 5, at.y + 5}, {at.x - 5, at.y - 5});
    EXPECT_TRUE(box.contains(view.traces[0].dots[0]));
    EXPECT_FALSE(
        map.box_between({at.x + 5, at.y}, {at.x + 9, at.y + 9}).contains(view.traces[0].dots[0]));
}

TEST(DrawRoofline, NamesDotsOutsideOfARectangleNot) {
    const MovementView view = small_roofline();
    const RooflineMap map(view, {100, 50, 500, 300});
    const auto words = [&](const RooflineOverlay& marks) {
        return words_of([&](Canvas& canvas) { draw_roofline(canvas, light_theme(), map, marks); });
    };
    EXPECT_THAT(words({}), testing::AllOf(HasSubstr(">large<"), HasSubstr(">small<")));
    EXPECT_THAT(words({.most_names = 1}), Not(HasSubstr(">small<")));
    EXPECT_THAT(words({.box = RooflineBox{2, 3, 1e10, 1e12}}), Not(HasSubstr(">large<")));
    EXPECT_NE(words({}), words({.hovered = RooflineDotId{0, 1}}));
}

}  // namespace
