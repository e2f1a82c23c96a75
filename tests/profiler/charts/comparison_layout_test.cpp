#include "profiler/charts/comparison_chart.h"

#include "profiler/charts/document.h"
#include "tests/profiler/charts/sample_comparison.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;
using tests::sample_comparison;

ComparisonLayout layout_of(const CompareView& view, double width = 1100) {
    ComparisonLayout layout;
    with_measuring_canvas(
        [&](Canvas& canvas) { layout = layout_comparison(canvas, view, {28, 100, width, 0}); });
    return layout;
}

TEST(LayoutComparison, SegmentsFillTheBarWithoutGaps) {
    const CompareView view = build_compare_view(sample_comparison(4));
    const ComparisonLayout layout = layout_of(view);
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const RowLayout& row = layout.rows[i];
        double right = row.memory_bar.x;
        for (const Rect& segment : row.segments) {
            EXPECT_NEAR(segment.x, right, 1e-6);
            right = segment.right();
        }
        EXPECT_NEAR(right, row.memory_bar.right(), 1e-6);
    }
}

TEST(LayoutComparison, LengthsAreProportionalToTheNumbersInEachPanel) {
    const CompareView view = build_compare_view(sample_comparison(3));
    const ComparisonLayout layout = layout_of(view);
    const auto check = [&](auto length, auto value) {
        const double scale = length(layout.rows[0]) / value(view.columns[0]);
        ASSERT_GT(scale, 0);
        for (std::size_t i = 1; i < view.columns.size(); ++i) {
            EXPECT_NEAR(length(layout.rows[i]), value(view.columns[i]) * scale, 1e-6);
        }
    };
    const auto number = [](int64_t value) { return static_cast<double>(value); };
    check([](const RowLayout& r) { return r.memory_bar.width; },
          [&](const CompareColumn& c) { return number(c.peak_bytes); });
    check([](const RowLayout& r) { return r.saved_bar.width; },
          [&](const CompareColumn& c) { return number(c.saved_bytes); });
    check([](const RowLayout& r) { return r.batch_bar.width; },
          [&](const CompareColumn& c) { return number(*c.max_batch_size); });
}

TEST(LayoutComparison, SavedAndPeakShareOneScale) {
    const CompareView view = build_compare_view(sample_comparison());
    const RowLayout row = layout_of(view).rows[0];
    EXPECT_NEAR(row.saved_bar.width / row.memory_bar.width,
                static_cast<double>(view.columns[0].saved_bytes) /
                    static_cast<double>(view.columns[0].peak_bytes),
                1e-9);
}

TEST(LayoutComparison, BarsLeaveRoomForTheirValuesInsideThePanel) {
    for (const double width : {584.0, 760.0, 1144.0, 3000.0}) {
        const CompareView view = build_compare_view(sample_comparison(8));
        const ComparisonLayout layout = layout_of(view, width);
        for (const RowLayout& row : layout.rows) {
            EXPECT_LT(row.memory_bar.right(), layout.memory.right());
            EXPECT_LT(row.batch_bar.right(), layout.batch.right());
            EXPECT_GT(row.memory_bar.width, 10) << width;
        }
        EXPECT_LT(layout.memory.right(), layout.batch.x);
        EXPECT_LT(layout.batch.right(), layout.throughput.x);
        EXPECT_NEAR(layout.throughput.right(), 28 + width, 1e-6);
    }
}

TEST(LayoutComparison, RowsOfAnyNumberStayInsideThePlot) {
    for (std::size_t recipes = 1; recipes <= 8; ++recipes) {
        const ComparisonLayout layout = layout_of(build_compare_view(sample_comparison(recipes)));
        double bottom = layout.memory.y;
        for (const RowLayout& row : layout.rows) {
            EXPECT_GE(row.memory_bar.y, bottom);
            EXPECT_GE(row.saved_bar.y, row.memory_bar.bottom());
            bottom = row.saved_bar.bottom();
        }
        EXPECT_LE(bottom, layout.memory.bottom());
    }
}

TEST(LayoutComparison, GrowsWithTheHeightAskedFor) {
    const CompareView view = build_compare_view(sample_comparison());
    with_measuring_canvas([&](Canvas& canvas) {
        const Rect small{28, 100, 1100, 0};
        const Rect tall{28, 100, 1100, 700};
        EXPECT_NEAR(layout_comparison(canvas, view, tall).bottom, 800, 1e-6);
        EXPECT_LT(layout_comparison(canvas, view, small).bottom, 500);
    });
}

}  // namespace
