#include "profiler/charts/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::HasSubstr;

LayoutsView small_view() {
    LayoutsView view{.device = "a processor", .sentence = "It is fast.", .num_configurations = 5};
    view.rows = {{.op = "scores",
                  .op_class = OpClass::kContraction,
                  .orders = "bhjp bhkp → bhjk",
                  .written = "bhjk",
                  .time_ns = 1200,
                  .best_ns = 1000,
                  .torch_ns = 2000,
                  .torch_written = "bjhk",
                  .all_ns = {1000, 1200, 90'000}},
                 {.op = "softmax dX",
                  .op_class = OpClass::kNormalization,
                  .is_backward = true,
                  .written = "hbjk",
                  .time_ns = 500,
                  .copies_ns = 20,
                  .best_ns = 500,
                  .all_ns = {500, 700}}};
    return view;
}

std::string render(const LayoutsView& view, ChartFormat format) {
    const auto chart = render_layouts_chart(view, "a layer", light_theme(), {.format = format});
    EXPECT_TRUE(chart) << chart.error().message;
    return chart.value_or("");
}

TEST(LayoutsChart, ShowsBothPassesWithOpsOrdersAndTimes) {
    const std::string svg = render(small_view(), ChartFormat::kSvg);
    for (const char* text : {"Forward", "Backward", "scores", "softmax dX", "bhjk", "hbjk",
                             "1.20 µs", "520 ns", "It is fast.", "5 configurations"}) {
        EXPECT_THAT(svg, HasSubstr(text));
    }
}

TEST(LayoutsChart, IsDrawnInEveryFormatAndTheme) {
    for (const ChartFormat format :
         {ChartFormat::kSvg, ChartFormat::kPdf, ChartFormat::kPng, ChartFormat::kHtml}) {
        EXPECT_FALSE(render(small_view(), format).empty());
    }
    EXPECT_TRUE(render_layouts_chart(small_view(), "", dark_theme(), {}));
}

TEST(LayoutsChart, LeavesOutAPassWithoutOps) {
    LayoutsView view = small_view();
    view.rows.pop_back();
    EXPECT_EQ(render(view, ChartFormat::kSvg).find("Backward"), std::string::npos);
    view.rows.clear();
    EXPECT_FALSE(render_layouts_chart(view, "", light_theme(), {}));
}

}  // namespace
