#include "profiler/charts/comparison_layout.h"

#include "profiler/charts/figure.h"

#include <algorithm>
#include <functional>
#include <string>

namespace profiler {
namespace {

constexpr double kTitleHeight = 42;  // panel title and remark
constexpr double kAxisHeight = 38;   // tick labels and axis title
constexpr double kPanelGap = 30;
constexpr double kYAxisWidth = 44;  // labels left of the throughput plot
constexpr double kNameIndent = 18;  // the marker before a name
constexpr double kRowHeight = 50;
constexpr double kMinPlotHeight = 200;
constexpr double kSavedHeight = 5;

double name_width(Canvas& canvas, const CompareView& view, double available) {
    double width = 0;
    for (const CompareColumn& column : view.columns) {
        const TextStyle style{.size = kTextSize, .weight = Weight::kBold};
        width = std::max(width, canvas.measure(column.recipe, style));
    }
    return std::min(width + 2, available) + kNameIndent + 10;
}

struct Bar {
    double value = 0;
    double label_width = 0;
};

/// The least end of the axis that leaves every bar room for its label inside the plot.
double fit_axis(const std::vector<Bar>& bars, double plot_width) {
    double end = 0;
    for (const Bar& bar : bars) {
        const double room = std::max(plot_width - bar.label_width - kValueIndent, plot_width * 0.2);
        end = std::max(end, bar.value * plot_width / room);
    }
    return end > 0 ? end : 1;
}

std::vector<Bar> collect(const CompareView& view,
                         const std::function<Bar(const CompareColumn&)>& bar) {
    std::vector<Bar> bars;
    for (const CompareColumn& column : view.columns) bars.push_back(bar(column));
    return bars;
}

void fit_axes(Canvas& canvas, const CompareView& view, ComparisonLayout& layout) {
    const auto bytes = [](int64_t size) { return static_cast<double>(size); };
    layout.memory_end_bytes =
        fit_axis(collect(view,
                         [&](const CompareColumn& c) {
                             return Bar{bytes(c.peak_bytes),
                                        measure_value(canvas, c.peak_text, c.peak_change)};
                         }),
                 layout.memory.width);
    const auto saved = collect(view, [&](const CompareColumn& c) {
        const TextStyle style{.size = kLabelSize};
        return Bar{bytes(c.saved_bytes),
                   canvas.measure("saved " + c.saved_text + " " + c.saved_change.text, style)};
    });
    layout.memory_end_bytes =
        std::max(layout.memory_end_bytes, fit_axis(saved, layout.memory.width));
    const auto batches = collect(view, [&](const CompareColumn& c) {
        return Bar{bytes(c.largest_batch),
                   measure_value(canvas, c.max_batch_text, c.max_batch_change)};
    });
    layout.batch_end = fit_axis(batches, layout.batch.width);
    const auto rates = collect(view, [&](const CompareColumn& c) {
        return Bar{c.sequences_per_s,
                   measure_value(canvas, c.throughput_text, c.throughput_change)};
    });
    layout.rate_end = fit_axis(rates, layout.throughput.width);
}

RowLayout layout_row(const ComparisonLayout& layout, const CompareColumn& column,
                     const Rect& band) {
    const double bar_height = std::min(band.height * 0.44, 30.0);
    const double top = band.center_y() - (bar_height + 5 + kSavedHeight + 4) / 2;
    RowLayout row;
    const Rect& m = layout.memory;
    const auto memory_x = [&](int64_t size_bytes) {
        return static_cast<double>(size_bytes) / layout.memory_end_bytes * m.width;
    };
    row.name = {band.x, top, band.width, bar_height};
    row.memory_bar = {m.x, top, memory_x(column.peak_bytes), bar_height};
    for (const StackSegment& segment : column.stack) {
        row.segments.push_back(
            {m.x + memory_x(segment.start_bytes), top, memory_x(segment.size_bytes), bar_height});
    }
    row.saved_bar = {m.x, top + bar_height + 5, memory_x(column.saved_bytes), kSavedHeight};
    const auto batch = static_cast<double>(column.largest_batch);
    row.batch_bar = {layout.batch.x, top, batch / layout.batch_end * layout.batch.width,
                     bar_height};
    row.rate_bar = {layout.throughput.x, top,
                    column.sequences_per_s / layout.rate_end * layout.throughput.width, bar_height};
    return row;
}

}  // namespace

ComparisonLayout layout_comparison(Canvas& canvas, const CompareView& view, const Rect& area) {
    ComparisonLayout layout;
    const double names = name_width(canvas, view, area.width * 0.16);
    const double y_axis = view.has_throughput ? kYAxisWidth : 0;
    const double room = area.width - names - 2 * kPanelGap - y_axis;
    const double rows_height = kRowHeight * static_cast<double>(view.columns.size());
    const double plot_height =
        std::max({kMinPlotHeight, rows_height, area.height - kTitleHeight - kAxisHeight});
    const double y = area.y + kTitleHeight;

    layout.panel_title_y = area.y + 13;
    layout.memory = {area.x + names, y, room * 0.46, plot_height};
    layout.batch = {layout.memory.right() + kPanelGap, y, room * 0.21, plot_height};
    layout.throughput = {layout.batch.right() + kPanelGap + y_axis, y, room * 0.33, plot_height};
    layout.bottom = y + plot_height + kAxisHeight;
    fit_axes(canvas, view, layout);

    const double row_height =
        plot_height / std::max<double>(1, static_cast<double>(view.columns.size()));
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const Rect band{area.x, y + static_cast<double>(i) * row_height, names, row_height};
        layout.rows.push_back(layout_row(layout, view.columns[i], band));
    }
    return layout;
}

}  // namespace profiler
