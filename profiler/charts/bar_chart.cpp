#include "profiler/charts/bars.h"
#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"

#include <algorithm>
#include <string>
#include <vector>

/// Bars of several series in up to three panels beside each other:
///
///     title, what was timed
///     legend of series
///                 Forward           Forward and backward    Hardware
///     group  |====== 52.7       |======= 58.8           |=====
///            |====== 56.5       |======== 61.8          |=====
///     group  |...
///     notes
namespace profiler {
namespace {

constexpr double kBarsTitleHeight = 42;  // panel title and remark
constexpr double kBarsAxisHeight = 24;   // tick labels
constexpr double kBarsPanelGap = 34;
constexpr double kBarHeight = 17;
constexpr double kBarGap = 2;
constexpr double kGroupGap = 14;
constexpr double kBarTextIndent = 6;
constexpr double kSeriesSwatch = 13;
constexpr double kPixelsPerBarTick = 64;
constexpr TextStyle kBarText{.size = kLabelSize, .weight = Weight::kBold};

/// Where the parts stand.
struct Layout {
    double names_width = 0;
    double group_height = 0;
    std::vector<Rect> plots;  // by panel
    double bottom = 0;        // below the axis labels
};

Layout lay_out(Canvas& canvas, const BarChart& chart, const Flow& flow) {
    Layout layout;
    const TextStyle name{.size = kTextSize, .weight = Weight::kBold};
    for (const std::string& group : chart.groups) {
        layout.names_width = std::max(layout.names_width, canvas.measure(group, name));
    }
    layout.names_width = std::min(layout.names_width, flow.width * 0.24) + 14;
    layout.group_height =
        static_cast<double>(chart.series.size()) * (kBarHeight + kBarGap) + kGroupGap;
    const auto count = static_cast<double>(chart.panels.size());
    const double width =
        (flow.width - layout.names_width - (count - 1) * kBarsPanelGap) / std::max(count, 1.0);
    const double height = layout.group_height * static_cast<double>(chart.groups.size());
    for (std::size_t i = 0; i < chart.panels.size(); ++i) {
        const double x =
            flow.x + layout.names_width + static_cast<double>(i) * (width + kBarsPanelGap);
        layout.plots.push_back({x, flow.y + kBarsTitleHeight, width, height});
    }
    layout.bottom = flow.y + kBarsTitleHeight + height + kBarsAxisHeight;
    return layout;
}

/// A device's colour; published figures are pale.
Color color_of_series(const Theme& theme, const BarChart& chart, std::size_t series) {
    const Color color = recipe_color(theme, chart.devices[series] + 1);
    return chart.sources[series] == BenchSource::kPublished ? mix(color, theme.plot, 0.5) : color;
}

/// The second cue beside the colour: what is predicted is hatched.
Hatch hatch_of_series(const BarChart& chart, std::size_t series) {
    return chart.sources[series] == BenchSource::kPredicted ? Hatch::kDiagonal : Hatch::kNone;
}

void draw_series_rect(Canvas& canvas, const Theme& theme, const BarChart& chart, std::size_t series,
                      const Rect& rect, double alpha = 1) {
    const Color fill = color_of_series(theme, chart, series);
    canvas.fill(rect, fill, alpha);
    const Hatch hatch = hatch_of_series(chart, series);
    if (hatch != Hatch::kNone && rect.width > 0) {
        canvas.hatch(rect, hatch, ink_on(fill), 0.28 * alpha);
    }
}

double draw_series_legend(Canvas& canvas, const Theme& theme, const BarChart& chart,
                          const Flow& flow) {
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        entries.push_back({.name = chart.series[i], .draw_mark = [&, i](Point at) {
                               draw_series_rect(canvas, theme, chart, i,
                                                {at.x, at.y, kSeriesSwatch, kSeriesSwatch});
                           }});
    }
    return draw_legend(canvas, theme, entries, flow);
}

/// The least end of the axis that leaves every bar room for its text inside the plot.
double axis_end_of(Canvas& canvas, const BarChart::Panel& panel, double width) {
    std::vector<LabelledBar> bars;
    for (const auto& group : panel.groups) {
        for (const BarChart::Bar& bar : group) {
            bars.push_back({std::max(bar.value, bar.outer), canvas.measure(bar.text, kBarText)});
        }
    }
    return fit_bar_axis(bars, width, kBarTextIndent, 0.3);
}

void draw_bar(Canvas& canvas, const Theme& theme, const BarChart& chart, const BarChart::Bar& bar,
              const Rect& slot, double end) {
    const auto part = [&](double value) {
        return Rect{slot.x, slot.y, value / end * slot.width, slot.height};
    };
    if (bar.outer > bar.value) {
        draw_series_rect(canvas, theme, chart, bar.series, part(bar.outer), 0.35);
    }
    draw_series_rect(canvas, theme, chart, bar.series, part(bar.value));
    TextStyle style = kBarText;
    const bool has_value = bar.value > 0;
    style.weight = has_value ? Weight::kBold : Weight::kRegular;
    style.color = has_value ? theme.text : theme.dim_text;
    const double x = slot.x + std::max(bar.value, bar.outer) / end * slot.width + kBarTextIndent;
    canvas.text({x, slot.center_y() + kLabelSize * 0.36}, bar.text, style);
}

void draw_panel(Canvas& canvas, const Theme& theme, const BarChart& chart,
                const BarChart::Panel& panel, const Rect& plot, double group_height) {
    draw_panel_title(canvas, theme, {plot.x, plot.y - kBarsTitleHeight + 14}, plot.width,
                     panel.title, {panel.remark});
    const double end = axis_end_of(canvas, panel, plot.width);
    const int ticks = std::max(2, static_cast<int>(plot.width / kPixelsPerBarTick));
    draw_x_axis(canvas, theme, plot, make_ticks(panel.unit, 0, end, ticks), 0, end);
    for (std::size_t g = 0; g < panel.groups.size(); ++g) {
        const double top = plot.y + static_cast<double>(g) * group_height + kGroupGap / 2;
        for (const BarChart::Bar& bar : panel.groups[g]) {
            const double y = top + static_cast<double>(bar.series) * (kBarHeight + kBarGap);
            draw_bar(canvas, theme, chart, bar, {plot.x, y, plot.width, kBarHeight}, end);
        }
    }
    canvas.line({plot.x, plot.y}, {plot.x, plot.bottom()},
                {.color = theme.dim_text, .width = 1, .alpha = 0.7});
}

void draw_names(Canvas& canvas, const Theme& theme, const BarChart& chart, const Layout& layout,
                double x) {
    const TextStyle style{.size = kTextSize, .weight = Weight::kBold, .color = theme.text};
    for (std::size_t g = 0; g < chart.groups.size(); ++g) {
        const auto lines =
            wrap_label(chart.groups[g], layout.names_width - 12, 3, canvas.measurer(style));
        double y = layout.plots.front().y + (static_cast<double>(g) + 0.5) * layout.group_height -
                   static_cast<double>(lines.size() - 1) * 8 + kTextSize * 0.36;
        for (const std::string& line : lines) {
            canvas.text({x, y}, line, style);
            y += 16;
        }
    }
}

double draw_figure(Canvas& canvas, const BarChart& chart, const Theme& theme,
                   const FigureText& text, double width) {
    const Flow flow{kMargin, kMargin - 6, width - 2 * kMargin};
    double y = draw_header(canvas, theme, text, flow) + 12;
    y = draw_series_legend(canvas, theme, chart, {flow.x, y, flow.width}) + 16;
    const Layout layout = lay_out(canvas, chart, {flow.x, y, flow.width});
    draw_names(canvas, theme, chart, layout, flow.x);
    for (std::size_t i = 0; i < chart.panels.size(); ++i) {
        draw_panel(canvas, theme, chart, chart.panels[i], layout.plots[i], layout.group_height);
    }
    return draw_footer(canvas, theme, text, {flow.x, layout.bottom + 12, flow.width}) + 16;
}

FigureText describe(const BarChart& chart, const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? chart.title : options.title;
    text.subtitle = chart.subtitle;
    text.footer = chart.notes;
    text.footer.emplace_back("Drawn by Temposcope.");
    return text;
}

}  // namespace

models::Result<std::string> render_bar_chart(const BarChart& chart, const Theme& theme,
                                             const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (chart.panels.empty()) {
        return models::fail("There is nothing to draw: no benchmark of this kind was run.");
    }
    const FigureText text = describe(chart, options);
    const auto draw = [&](Canvas& canvas) {
        return draw_figure(canvas, chart, theme, text, options.width);
    };
    Page page = page_of(text, theme, options, measure_height(draw));
    page.description = text.subtitle;
    const auto drawn = draw_page(page, options.format, draw);
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, &chart.table, theme);
}

}  // namespace profiler
