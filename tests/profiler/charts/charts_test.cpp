// Goal: files that other programs open, hold what the view says, and are the same every time.
// Method: headers and sizes of each format, words in the HTML, bytes of repeated runs; how it looks
// is checked by eye.

#include "profiler/charts/charts.h"

#include "profiler/charts/canvas.h"
#include "profiler/charts/document.h"
#include "tests/profiler/charts/sample_comparison.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>
#include <string>

namespace {

using namespace profiler;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::sample_comparison;

CompareView sample_view(std::size_t recipes = 2) {
    return build_compare_view(sample_comparison(recipes));
}

std::string render(const CompareView& view, const ChartOptions& options,
                   const Theme& theme = light_theme()) {
    const auto bytes = render_comparison_chart(view, theme, options);
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes.value_or("");
}

BarChart sample_bars() {
    BarChart chart;
    chart.title = "One layer";
    chart.series = {"here, measured", "t4, predicted", "t4, published"};
    chart.devices = {0, 1, 1};
    chart.sources = {BenchSource::kMeasured, BenchSource::kPredicted, BenchSource::kPublished};
    chart.groups = {"bert-large, S 128 B 2", "gpt2 <medium>, S 512 B 2"};
    for (const char* title : {"Forward", "Forward and backward", "Memory"}) {
        BarChart::Panel panel{.title = title, .remark = "TFLOPS"};
        panel.groups = {{{0, 0.1, 0, "0.100"}, {1, 12.5, 16, "12.5"}, {2, 14, 0, "14.0"}},
                        {{0, 0, 0, "out of memory"}, {1, 11, 0, "11.0"}}};
        chart.panels.push_back(std::move(panel));
    }
    return chart;
}

uint32_t big_endian(const std::string& bytes, std::size_t at) {
    uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
    }
    return value;
}

/// Each opened element of an XML text is closed in the right order.
bool is_balanced(std::string_view xml) {
    std::vector<std::string> open;
    for (std::size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at + 1)) {
        const std::size_t end = xml.find('>', at);
        if (end == std::string_view::npos) return false;
        const std::string_view tag = xml.substr(at + 1, end - at - 1);
        if (tag.starts_with('?') || tag.starts_with('!') || tag.ends_with('/')) continue;
        const std::string name(tag.substr(0, tag.find_first_of(" \n")));
        if (!tag.starts_with('/')) {
            open.push_back(name);
        } else {
            if (open.empty() || "/" + open.back() != name) return false;
            open.pop_back();
        }
    }
    return open.empty();
}

Trace small_trace(int64_t activation_bytes) {
    tests::TraceBuilder b;
    b.allocate({.bytes = 1 << 20, .category = Category::kParameter});
    b.begin_step(PhaseKind::kForward);
    const auto activation =
        b.allocate({.bytes = activation_bytes, .category = Category::kActivation});
    b.wait(1'000'000);
    b.begin_phase(PhaseKind::kBackward);
    b.wait(2'000'000);
    b.free(activation);
    return b.finish();
}

TimelineView two_traces() {
    const Trace a = small_trace(4 << 20);
    const Trace b = small_trace(2 << 20);
    const StepIndex step_a(a);
    const StepIndex step_b(b);
    return build_timeline_view(
        {.steps = {&step_a, &step_b},
         .names = {"original", "tempo"},
         .start_ns = 0,
         .end_ns = 3.1e6,
         .width_px = 400,
         .alignment = std::make_shared<const Alignment>(align(a, b, TimeAlignment::kPhases))});
}

TEST(ComparisonChart, WritesASvgOfTheSizeAskedFor) {
    const std::string svg = render(sample_view(), {.width = 1000, .height = 900});
    EXPECT_THAT(svg, StartsWith("<?xml"));
    EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 1000 900\""));
    EXPECT_TRUE(is_balanced(svg));
}

TEST(ComparisonChart, DescribesItselfInWordsInTheSvg) {
    const std::string svg = render(sample_view(), {.title = "A < B"});
    EXPECT_THAT(svg, HasSubstr("<title>A &lt; B</title>"));
    EXPECT_THAT(svg, HasSubstr("6.7 % less memory &amp; more."));
}

TEST(ComparisonChart, KeepsEveryWordOfTheSvgAsText) {
    const CompareView view = sample_view(3);
    const std::string svg = render(view, {});
    for (const CompareColumn& column : view.columns) {
        EXPECT_THAT(svg, HasSubstr(">" + column.recipe + "</text>"));
        EXPECT_THAT(svg, HasSubstr(">" + column.peak_text + "</text>"));
        EXPECT_THAT(svg, HasSubstr(">" + column.max_batch_text + "</text>"));
    }
    for (const char* words : {"Peak allocated", "Largest batch", "Throughput", "Optimizer state"}) {
        EXPECT_THAT(svg, HasSubstr(std::string(">") + words + "</text>"));
    }
    EXPECT_THAT(svg, Not(HasSubstr("<use"))) << "no letters as outlines";
}

TEST(ComparisonChart, EscapesTheNamesInTheSvg) {
    Comparison comparison = sample_comparison();
    comparison.columns[1].recipe = "a<b>&\"c\"";
    const std::string svg = render(build_compare_view(comparison), {});
    EXPECT_THAT(svg, HasSubstr(">a&lt;b&gt;&amp;&quot;c&quot;</text>"));
    EXPECT_TRUE(is_balanced(svg));
}

/// Goal: charts stay small enough for a repository or a page: 8 recipes with all panels filled.
TEST(ComparisonChart, WritesASmallSvg) {
    EXPECT_LT(render(sample_view(8), {}).size(), 60'000u);
    EXPECT_LT(render(sample_view(2), {}).size(), 25'000u);
}

TEST(ComparisonChart, WritesAPngOfTheScaledSize) {
    const std::string png =
        render(sample_view(),
               {.format = ChartFormat::kPng, .width = 800, .height = 700, .png_scale = 1.5});
    EXPECT_THAT(png, StartsWith("\x89PNG\r\n\x1a\n"));
    EXPECT_EQ(big_endian(png, 16), 1200u);
    EXPECT_EQ(big_endian(png, 20), 1050u);
}

TEST(ComparisonChart, WritesOnePageOfPdf) {
    const std::string pdf = render(sample_view(), {.format = ChartFormat::kPdf});
    EXPECT_THAT(pdf, StartsWith("%PDF-1.4"));
    EXPECT_THAT(pdf, HasSubstr("/Count 1"));
    EXPECT_THAT(pdf, HasSubstr("Roboto")) << "text is text in the embedded font, not outlines";
    EXPECT_TRUE(pdf.ends_with("%%EOF\n"));
}

TEST(ComparisonChart, HtmlHoldsThePictureAndEveryNumberOfTheTable) {
    const CompareView view = sample_view(3);
    const std::string html = render(view, {.format = ChartFormat::kHtml});
    EXPECT_THAT(html, StartsWith("<!doctype html>"));
    EXPECT_THAT(html, HasSubstr("<svg"));
    EXPECT_THAT(html, Not(HasSubstr("<?xml")));
    for (const TextTable::Column& column : view.table.columns) {
        EXPECT_THAT(html, HasSubstr(">" + column.title + "</th>"));
    }
    for (const auto& row : view.table.rows) {
        for (const std::string& cell : row) EXPECT_THAT(html, HasSubstr(">" + cell + "</td>"));
    }
    EXPECT_THAT(html, HasSubstr("class=\"right good\""));
}

TEST(ComparisonChart, HtmlLoadsNothingFromElsewhere) {
    const std::string html = render(sample_view(), {.format = ChartFormat::kHtml});
    for (const char* reference : {"src=", "<link", "@import", "url(http"}) {
        EXPECT_THAT(html, Not(HasSubstr(reference)));
    }
    EXPECT_THAT(html, HasSubstr("default-src 'none'")) << "nor may a script load anything";
}

TEST(ComparisonChart, GivesTheSameBytesEveryTime) {
    const CompareView view = sample_view(4);
    for (const ChartFormat format :
         {ChartFormat::kSvg, ChartFormat::kPdf, ChartFormat::kPng, ChartFormat::kHtml}) {
        EXPECT_EQ(render(view, {.format = format}), render(view, {.format = format}))
            << name_of(format);
    }
}

TEST(ComparisonChart, DrawsEveryNumberOfRecipesInBothThemes) {
    for (std::size_t recipes = 1; recipes <= 8; ++recipes) {
        for (const Theme* theme : {&light_theme(), &dark_theme()}) {
            for (const double width : {640.0, 1200.0}) {
                EXPECT_GT(render(sample_view(recipes), {.width = width}, *theme).size(), 10'000u);
            }
        }
    }
}

TEST(ComparisonChart, GrowsWithTheRecipes) {
    const auto height = [](std::size_t recipes) {
        return big_endian(
            render(sample_view(recipes), {.format = ChartFormat::kPng, .png_scale = 1}), 20);
    };
    EXPECT_GT(height(8), height(4));
    EXPECT_EQ(height(2), height(3)) << "few recipes fill the least height";
}

TEST(ComparisonChart, DrawsWithoutASweepAndWithoutAStep) {
    const CompareView no_sweep = build_compare_view(tests::sample_without_sweep());
    EXPECT_NE(render(no_sweep, {}), render(sample_view(), {}));
    Comparison only_sweep = sample_comparison();
    for (ComparisonColumn& column : only_sweep.columns) {
        column.peak_by_category = {};
        column.peak_allocated_bytes = column.saved_bytes = 0;
        column.sequences_per_s = 0;
    }
    EXPECT_THAT(render(build_compare_view(only_sweep), {}),
                HasSubstr(">No captured step in these"));
    Comparison nothing;
    nothing.columns.resize(1);
    EXPECT_GT(render(build_compare_view(nothing), {}).size(), 1'000u);
}

TEST(ComparisonChart, DrawsASweepInWhichNothingFitted) {
    Comparison comparison = sample_comparison();
    for (ComparisonColumn& column : comparison.columns) {
        ThroughputPoint failed;
        failed.batch_size = 1;
        failed.out_of_memory = true;
        column.curve = {failed};
        column.max_batch = bounds_of(column.curve);
    }
    EXPECT_GT(render(build_compare_view(comparison), {}).size(), 10'000u);
}

TEST(ComparisonChart, SaysThatATextIsNotUtf8) {
    for (const ChartFormat format : {ChartFormat::kSvg, ChartFormat::kPdf, ChartFormat::kPng}) {
        const auto drawn = render_comparison_chart(sample_view(), light_theme(),
                                                   {.format = format, .title = "a\xff"});
        ASSERT_FALSE(drawn) << name_of(format);
        EXPECT_THAT(drawn.error().message, HasSubstr("is not UTF-8")) << name_of(format);
    }
}

TEST(ComparisonChart, DoesNotDependOnTheLocale) {
    const std::string expected = render(sample_view(), {});
    struct Commas : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
    };
    const std::locale before = std::locale::global(std::locale(std::locale(), new Commas));
    const std::string svg = render(sample_view(), {});
    std::locale::global(before);
    EXPECT_EQ(svg, expected);
}

TEST(ComparisonChart, RefusesWhatMakesNoPicture) {
    const CompareView view = sample_view();
    const auto message = [&](const CompareView& v, const ChartOptions& options) {
        const auto bytes = render_comparison_chart(v, light_theme(), options);
        return bytes ? "" : bytes.error().message;
    };
    EXPECT_EQ(message(view, {.width = 10}),
              "A chart cannot be 10 wide; choose a width from 640 to 8000.");
    EXPECT_THAT(message(view, {.width = 1e9}), HasSubstr("640 to 8000"));
    EXPECT_THAT(message(view, {.height = -1}), HasSubstr("cannot be -1 high"));
    EXPECT_THAT(message(view, {.png_scale = 0}), HasSubstr("PNG scale of 0"));
    EXPECT_EQ(message({}, {}), "There is nothing to draw: the comparison has no recipes.");
}

TEST(ComparisonChart, ReportsAPathThatCannotBeWritten) {
    const auto written =
        write_comparison_chart(sample_view(), light_theme(), {}, "/proc/chart.svg");
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, StartsWith("Cannot write /proc/chart.svg: "));
}

TEST(TimelineChart, DrawsTwoTracesAndTheirDifference) {
    const TimelineView view = two_traces();
    const auto svg = render_timeline_chart(view, light_theme(), {}).value();
    EXPECT_TRUE(is_balanced(svg));
    EXPECT_THAT(svg, HasSubstr("<desc>original: peak 5.00 MiB; tempo: peak 3.00 MiB</desc>"));
    EXPECT_EQ(svg, render_timeline_chart(view, light_theme(), {}));
    TimelineView one = view;
    one.traces.pop_back();
    one.difference_bytes.clear();
    EXPECT_LT(render_timeline_chart(one, light_theme(), {})->size(), svg.size());
}

TEST(TimelineChart, RefusesAnEmptyWindow) {
    const auto svg = render_timeline_chart({}, light_theme(), {});
    ASSERT_FALSE(svg);
    EXPECT_EQ(svg.error().message, "There is nothing to draw: the time window is empty.");
}

TEST(ParseChartFormat, KnowsFourNames) {
    EXPECT_EQ(parse_chart_format("PNG"), ChartFormat::kPng);
    EXPECT_EQ(parse_chart_format("html"), ChartFormat::kHtml);
    EXPECT_EQ(parse_chart_format("gif").error().message,
              "\"gif\" is not a chart format; choose one of svg, pdf, png, html.");
    EXPECT_FALSE(parse_chart_format(""));
    EXPECT_FALSE(parse_chart_format("svgz"));
}

TEST(ChartFormatOf, ReadsTheExtension) {
    EXPECT_EQ(chart_format_of("a/b.c/chart.pdf"), ChartFormat::kPdf);
    EXPECT_EQ(
        chart_format_of("chart").error().message,
        "chart does not say which format it is; end its name in one of .svg, .pdf, .png, .html.");
}

TEST(Canvas, SetsNumbersWithAMinusSignAsWideAsThePlus) {
    with_measuring_canvas([](Canvas& canvas) {
        const TextStyle style{.size = 100};
        EXPECT_NEAR(canvas.measure("-1", style), canvas.measure("+1", style), 2.0);
        EXPECT_EQ(canvas.measure("-x", style),
                  canvas.measure("-", style) + canvas.measure("x", style));
    });
}

TEST(Canvas, HasDigitsOfEqualWidth) {
    with_measuring_canvas([](Canvas& canvas) {
        for (const Weight weight : {Weight::kRegular, Weight::kBold}) {
            const TextStyle style{.size = 50, .weight = weight};
            for (const char* digit : {"1", "4", "7", "8"}) {
                EXPECT_NEAR(canvas.measure(digit, style), canvas.measure("0", style), 1e-9);
            }
        }
    });
}

TEST(BarChart, ShowsEveryGroupSeriesAndValueInEachFormat) {
    for (const ChartFormat format :
         {ChartFormat::kSvg, ChartFormat::kPdf, ChartFormat::kPng, ChartFormat::kHtml}) {
        const auto bytes = render_bar_chart(sample_bars(), light_theme(), {.format = format});
        ASSERT_TRUE(bytes) << bytes.error().message;
        EXPECT_GT(bytes->size(), 1000U);
        EXPECT_EQ(*bytes, *render_bar_chart(sample_bars(), light_theme(), {.format = format}));
    }
    const auto svg = render_bar_chart(sample_bars(), light_theme(), {});
    for (const char* part : {"bert-large", "gpt2 &lt;medium&gt;", "t4, published", "12.5",
                             "out of memory", "Forward and backward", "Memory"}) {
        EXPECT_THAT(*svg, HasSubstr(part));
    }
    EXPECT_TRUE(is_balanced(*svg));
}

TEST(BarChart, RefusesNothingToDraw) {
    const auto nothing = render_bar_chart({}, light_theme(), {});
    ASSERT_FALSE(nothing);
    EXPECT_THAT(nothing.error().message, HasSubstr("nothing to draw"));
}

}  // namespace
