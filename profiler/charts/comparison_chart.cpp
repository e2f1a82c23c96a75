#include "profiler/charts/comparison_chart.h"

#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
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

namespace {

constexpr int kPixelsPerTick = 58;  // room for "1024 MiB"

int tick_count(double width) { return std::max(2, static_cast<int>(width) / kPixelsPerTick); }

/// Baseline that centres text of size kTextSize in a bar.
double middle_of(const Rect& bar) { return bar.center_y() + kTextSize * 0.36; }

void draw_base_line(Canvas& canvas, const Theme& theme, const Rect& plot) {
    canvas.line({plot.x, plot.y}, {plot.x, plot.bottom()},
                {.color = theme.dim_text, .width = 1, .alpha = 0.7});
}

/// The bytes of a category, inside its part of the bar if they fit.
void draw_segment_text(Canvas& canvas, Color fill, const Rect& rect, const std::string& text) {
    const TextStyle style{.size = 10.5, .color = ink_on(fill), .align = 0.5};
    const double width = canvas.measure(text, style) + 8;
    if (width + 6 > rect.width || rect.height < 15) return;
    const Rect plate{rect.center_x() - width / 2, rect.center_y() - 7, width, 14};
    canvas.fill_rounded(plate, 3, fill);  // covers the hatch
    canvas.text({rect.center_x(), rect.center_y() + 3.8}, text, style);
}

void draw_stack(Canvas& canvas, const Theme& theme, const CompareColumn& column,
                const RowLayout& row) {
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
        draw_category_rect(canvas, theme, column.stack[i].category, row.segments[i]);
        if (i > 0) {  // a thin line of the background between layers
            const Rect gap{row.segments[i].x - 0.4, row.segments[i].y, 0.8, row.segments[i].height};
            canvas.fill(gap, theme.plot);
        }
    }
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
        draw_segment_text(canvas, color_of(theme, column.stack[i].category), row.segments[i],
                          column.stack[i].text);
    }
}

void draw_saved(Canvas& canvas, const Theme& theme, const CompareColumn& column,
                const RowLayout& row) {
    if (column.saved_bytes <= 0) return;
    canvas.fill(row.saved_bar, theme.dim_text);
    const TextStyle style{.size = kLabelSize, .color = theme.dim_text};
    const Point at{row.saved_bar.right() + 6, row.saved_bar.bottom() + 2};
    const double width = canvas.text(at, "saved " + column.saved_text, style);
    const TextStyle toned{.size = kLabelSize, .color = tone_color(theme, column.saved_change.tone)};
    canvas.text({at.x + width + 5, at.y}, column.saved_change.text, toned);
}

/// A bar in the recipe's colour, with its pattern where recipes share a colour.
void draw_recipe_bar(Canvas& canvas, const Theme& theme, const Rect& bar, std::size_t index,
                     double alpha) {
    const Color fill = recipe_color(theme, index);
    canvas.fill(bar, fill, alpha);
    const Hatch hatch = recipe_hatch(index);
    if (hatch != Hatch::kNone && bar.width > 0) canvas.hatch(bar, hatch, ink_on(fill), 0.3 * alpha);
}

void draw_recipe_names(Canvas& canvas, const Theme& theme, const CompareView& view,
                       const ComparisonLayout& layout) {
    const TextStyle style{.size = kTextSize, .weight = Weight::kBold, .color = theme.text};
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const CompareColumn& column = view.columns[i];
        const Rect& name = layout.rows[i].name;
        canvas.marker(recipe_marker(column.color), {name.x + 6, name.center_y()}, 4.5,
                      recipe_color(theme, column.color));
        auto lines = wrap_label(column.recipe, name.width - 26, column.batch_text.empty() ? 3 : 2,
                                canvas.measurer(style));
        if (!column.batch_text.empty()) lines.push_back(column.batch_text);
        if (column.is_predicted) lines.emplace_back("predicted");
        double y = middle_of(name) - 7.5 * static_cast<double>(lines.size() - 1);
        for (const std::string& line : lines) {
            canvas.text({name.x + 18, y}, line, style);
            y += 15;
        }
    }
}

void draw_memory_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                       const ComparisonLayout& layout) {
    const Rect& plot = layout.memory;
    draw_panel_title(canvas, theme, {plot.x, layout.panel_title_y}, plot.width, kPeakAllocated,
                     {"by category, each recipe at its own peak; thin: saved for backward",
                      "by category; thin: saved for backward", "by category; thin: saved"});
    if (!view.has_peak) {
        draw_empty_panel(canvas, theme, plot,
                         "No captured step in these files; run temposcope capture.");
        return;
    }
    const auto ticks =
        make_ticks(AxisUnit::kBytes, 0, layout.memory_end_bytes, tick_count(plot.width));
    draw_x_axis(canvas, theme, plot, ticks, 0, layout.memory_end_bytes);
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const CompareColumn& column = view.columns[i];
        const RowLayout& row = layout.rows[i];
        draw_stack(canvas, theme, column, row);
        draw_value(canvas, theme,
                   {row.memory_bar.right() + kValueIndent, middle_of(row.memory_bar)},
                   column.peak_text, column.peak_change);
        draw_saved(canvas, theme, column, row);
    }
    draw_base_line(canvas, theme, plot);
}

void draw_batch_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                      const ComparisonLayout& layout) {
    const Rect& plot = layout.batch;
    const std::string remark =
        view.memory_limit_text.empty() ? "sequences per step" : "within " + view.memory_limit_text;
    draw_panel_title(canvas, theme, {plot.x, layout.panel_title_y}, plot.width, kLargestBatch,
                     {remark});
    if (!view.has_max_batch) {
        draw_empty_panel(canvas, theme, plot, view.no_max_batch_text);
        return;
    }
    const auto ticks =
        make_ticks(AxisUnit::kCount, 0, layout.batch_end, tick_count(plot.width) + 1);
    draw_x_axis(canvas, theme, plot, ticks, 0, layout.batch_end);
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const CompareColumn& column = view.columns[i];
        const Rect& bar = layout.rows[i].batch_bar;
        // Pale: everything fitted, so the maximum is larger than what the sweep tried.
        draw_recipe_bar(canvas, theme, bar, column.color, column.max_batch_size ? 1 : 0.35);
        draw_value(canvas, theme, {bar.right() + kValueIndent, middle_of(bar)},
                   column.max_batch_text, column.max_batch_change);
    }
    draw_base_line(canvas, theme, plot);
}

/// Throughput of the captured steps as bars, for comparisons without a sweep.
void draw_rate_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                     const ComparisonLayout& layout) {
    const Rect& plot = layout.throughput;
    draw_panel_title(canvas, theme, {plot.x, layout.panel_title_y}, plot.width, "Throughput",
                     {"sequences/s of the captured steps (no sweep in these files)",
                      "sequences/s of the captured steps", "sequences/s"});
    const bool has_rates = std::ranges::any_of(
        view.columns, [](const CompareColumn& c) { return c.sequences_per_s > 0; });
    if (!has_rates) {
        draw_empty_panel(canvas, theme, plot, view.no_rate_text);
        return;
    }
    const auto ticks = make_ticks(AxisUnit::kRate, 0, layout.rate_end, tick_count(plot.width));
    draw_x_axis(canvas, theme, plot, ticks, 0, layout.rate_end);
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        const CompareColumn& column = view.columns[i];
        const Rect& bar = layout.rows[i].rate_bar;
        draw_recipe_bar(canvas, theme, bar, column.color, 1);
        draw_value(canvas, theme, {bar.right() + kValueIndent, middle_of(bar)},
                   column.throughput_text, column.throughput_change);
    }
    draw_base_line(canvas, theme, plot);
}

constexpr double kInset = 10;  // keeps the first and last marker inside the plot
constexpr double kLogRatio = 16;
constexpr std::size_t kMaxLabelled = 3;

/// Maps batch sizes to x. The axis is logarithmic when small batches would overlap on a linear one,
/// since sweeps double the batch.
class BatchAxis {
public:
    BatchAxis(const CompareView& view, const Rect& plot) : plot_(plot) {
        for (const CompareColumn& column : view.columns) {
            for (const CurvePoint& point : column.curve) batches_.insert(point.batch_size);
            if (column.out_of_memory_batch) batches_.insert(*column.out_of_memory_batch);
        }
        low_ = static_cast<double>(*batches_.begin());
        high_ = static_cast<double>(*batches_.rbegin());
        is_log_ = low_ > 0 && high_ / low_ >= kLogRatio;
    }

    double x(int64_t batch_size) const {
        if (high_ <= low_) return plot_.center_x();
        const auto b = static_cast<double>(batch_size);
        const double t =
            is_log_ ? std::log(b / low_) / std::log(high_ / low_) : (b - low_) / (high_ - low_);
        return plot_.x + kInset + t * (plot_.width - 2 * kInset);
    }

    /// Labels at the batches that were tried, as many as fit without touching.
    void draw(Canvas& canvas, const Theme& theme) const {
        const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
        const LineStyle grid{.color = theme.text, .alpha = theme.is_dark ? 0.07 : 0.08};
        double free_from = plot_.x - kInset;
        for (const int64_t batch_size : batches_) {
            const std::string label = fmt::format("{}", batch_size);
            const double half = canvas.measure(label, style) / 2 + 4;
            const double at = x(batch_size);
            if (at - half < free_from) continue;
            canvas.line({at, plot_.y}, {at, plot_.bottom()}, grid);
            canvas.text({at, plot_.bottom() + 15}, label, style);
            free_from = at + half;
        }
    }

private:
    Rect plot_;
    std::set<int64_t> batches_;
    double low_ = 0;
    double high_ = 1;
    bool is_log_ = false;
};

struct Scales {
    Rect plot;
    BatchAxis batch;
    double rate_end = 1;
    bool has_bands = true;  // bands of many recipes hide each other, so they get bars alone

    double y(double rate) const { return plot.bottom() - rate / rate_end * plot.height; }
};

void draw_spread(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color) {
    std::vector<Point> outline;
    for (const CurvePoint& point : column.curve) {
        outline.push_back({scales.batch.x(point.batch_size), scales.y(point.sequences_per_s_max)});
    }
    for (auto point = column.curve.rbegin(); point != column.curve.rend(); ++point) {
        outline.push_back(
            {scales.batch.x(point->batch_size), scales.y(point->sequences_per_s_min)});
    }
    if (scales.has_bands) canvas.polygon(outline, color, 0.16);
    for (const CurvePoint& point : column.curve) {  // visible even with a single batch
        const double x = scales.batch.x(point.batch_size);
        canvas.line({x, scales.y(point.sequences_per_s_min)},
                    {x, scales.y(point.sequences_per_s_max)},
                    {.color = color, .width = 1, .alpha = 0.6});
    }
}

void draw_curve(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color) {
    std::vector<Point> points;
    for (const CurvePoint& point : column.curve) {
        points.push_back({scales.batch.x(point.batch_size), scales.y(point.sequences_per_s)});
    }
    canvas.polyline(points, {.color = color, .width = 1.8});
    for (const Point& point : points) canvas.marker(recipe_marker(column.color), point, 3.6, color);
}

/// Crosses at the bottom of the plot. Recipes that failed at the same batch are stacked.
bool draw_failures(Canvas& canvas, const Theme& theme, const CompareView& view,
                   const Scales& scales) {
    std::multiset<int64_t> drawn;
    for (const CompareColumn& column : view.columns) {
        if (!column.out_of_memory_batch) continue;
        const auto below = static_cast<double>(drawn.count(*column.out_of_memory_batch));
        const Point at{scales.batch.x(*column.out_of_memory_batch),
                       scales.plot.bottom() - 8 - 11 * below};
        canvas.marker(Marker::kCross, at, 4, recipe_color(theme, column.color));
        drawn.insert(*column.out_of_memory_batch);
    }
    return !drawn.empty();
}

struct BestLabel {
    Point at;  // of the point
    double text_y = 0;
    std::string text;
};

/// Up to kMaxLabelled recipes all show their best rate; of more, the baseline and the fastest.
bool is_labelled(const CompareView& view, const CompareColumn& column) {
    const auto rate = [](const CompareColumn& c) {
        return c.best_point ? c.curve[*c.best_point].sequences_per_s : 0;
    };
    if (view.columns.size() <= kMaxLabelled || column.is_baseline) return true;
    return std::ranges::all_of(
        view.columns, [&](const CompareColumn& other) { return rate(other) <= rate(column); });
}

/// Places labels from the top down. A label that would overlap another moves down to the next free
/// line.
void draw_best(Canvas& canvas, const Theme& theme, const CompareView& view, const Scales& scales) {
    std::vector<BestLabel> labels;
    for (const CompareColumn& column : view.columns) {
        if (!column.best_point || !is_labelled(view, column)) continue;
        const CurvePoint& best = column.curve[*column.best_point];
        const Point at{scales.batch.x(best.batch_size), scales.y(best.sequences_per_s)};
        const std::string rate = column.best_text.substr(0, column.best_text.find(' '));
        labels.push_back({at, at.y - 9, rate});
        canvas.ring(at, 6.5, {.color = recipe_color(theme, column.color), .width = 1.4});
    }
    std::ranges::stable_sort(
        labels, [](const BestLabel& a, const BestLabel& b) { return a.at.y < b.at.y; });
    const TextStyle style{
        .size = kLabelSize, .weight = Weight::kBold, .color = theme.text, .align = 0.5};
    std::vector<Rect> taken;
    for (BestLabel& label : labels) {
        const double half = canvas.measure(label.text, style) / 2 + 3;
        const double x = std::clamp(label.at.x, scales.plot.x + half, scales.plot.right() - half);
        const auto overlaps = [&](double y) {
            return std::ranges::any_of(taken, [&](const Rect& r) {
                return x + half > r.x && x - half < r.right() && y > r.y && y - 12 < r.bottom();
            });
        };
        while (overlaps(label.text_y) && label.text_y < scales.plot.bottom()) label.text_y += 4;
        taken.push_back({x - half, label.text_y - 12, 2 * half, 12});
        canvas.fill_rounded({x - half, label.text_y - 10.5, 2 * half, 13}, 3, theme.plot, 0.8);
        canvas.text({x, label.text_y}, label.text, style);
    }
}

/// Sequences per second over the batch size, a line per recipe. A band shows the spread of its
/// steps, a ring and a label its best batch, a cross the batch that did not fit.
void draw_throughput_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                           const ComparisonLayout& layout) {
    const Rect& plot = layout.throughput;
    const int ticks = std::max(3, static_cast<int>(plot.height) / 46);
    const Scales scales{plot, BatchAxis(view, plot),
                        axis_end(AxisUnit::kRate, view.max_sequences_per_s, 0.1, ticks),
                        view.columns.size() <= kMaxLabelled};
    draw_panel_title(canvas, theme, {plot.x - 36, layout.panel_title_y}, plot.width + 36,
                     "Throughput",
                     {scales.has_bands ? "sequences/s; band: slowest to fastest step; ring: best"
                                       : "sequences/s; bars: slowest to fastest step; ring: best",
                      "sequences/s; ring: best", "sequences/s"});
    draw_y_axis(canvas, theme, plot, make_ticks(AxisUnit::kRate, 0, scales.rate_end, ticks),
                scales.rate_end);
    scales.batch.draw(canvas, theme);
    for (const CompareColumn& column : view.columns) {
        if (!column.curve.empty()) {
            draw_spread(canvas, scales, column, recipe_color(theme, column.color));
        }
    }
    for (const CompareColumn& column : view.columns) {
        draw_curve(canvas, scales, column, recipe_color(theme, column.color));
    }
    const bool has_failures = draw_failures(canvas, theme, view, scales);
    draw_best(canvas, theme, view, scales);
    canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()},
                {.color = theme.dim_text, .alpha = 0.7});
    canvas.text({plot.center_x(), plot.bottom() + 31},
                has_failures ? "batch size  (× did not fit)" : "batch size",
                {.size = kLabelSize, .color = theme.dim_text, .align = 0.5});
}

FigureText describe(const CompareView& view, const ChartOptions& options) {
    FigureText text;
    text.title =
        options.title.empty() ? "Memory, largest batch and throughput by recipe" : options.title;
    text.subtitle = view.workload;
    text.sentence = view.sentence;
    if (!view.source.empty()) {
        const bool has_changes = view.columns.size() > 1 && view.has_one_baseline;
        text.footer.push_back(view.source + (has_changes ? fmt::format(". Changes are against {}.",
                                                                       view.columns.front().recipe)
                                                         : std::string(".")));
    }
    for (const std::string& note : view.notes) text.footer.push_back("Note: " + note);
    text.footer.emplace_back(
        "Peak allocated: the most bytes in tensors at one time in the recorded steps. Saved: bytes "
        "that autograd holds from forward to backward. Drawn by Temposcope.");
    return text;
}

/// Draws the figure, at least `height` points high; returns the height it needs.
double draw_figure(Canvas& canvas, const CompareView& view, const Theme& theme,
                   const FigureText& text, double width, double height, double fixed_height) {
    const Flow flow{kMargin, kMargin - 6, width - 2 * kMargin};
    double y = draw_header(canvas, theme, text, flow) + 12;
    y = draw_category_legend(canvas, theme, view.categories, {flow.x, y, flow.width}) + 14;
    // The parts above and below the panels have the same height in every figure.
    const double panels_height = std::max(0.0, height - fixed_height);
    const ComparisonLayout layout =
        layout_comparison(canvas, view, {flow.x, y, flow.width, panels_height});
    draw_recipe_names(canvas, theme, view, layout);
    draw_memory_panel(canvas, theme, view, layout);
    draw_batch_panel(canvas, theme, view, layout);
    if (view.has_throughput) {
        draw_throughput_panel(canvas, theme, view, layout);
    } else {
        draw_rate_panel(canvas, theme, view, layout);
    }
    return draw_footer(canvas, theme, text, {flow.x, layout.bottom + 12, flow.width}) + 16;
}

}  // namespace

models::Result<std::string> render_comparison_chart(const CompareView& view, const Theme& theme,
                                                    const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (view.columns.empty()) {
        return models::fail("There is nothing to draw: the comparison has no recipes.");
    }
    const FigureText text = describe(view, options);
    const double natural_height = measure_height([&](Canvas& canvas) {
        return draw_figure(canvas, view, theme, text, options.width, 0, 0);
    });
    const double natural_panels = measure_height([&](Canvas& canvas) {
        return layout_comparison(canvas, view, {kMargin, 0, options.width - 2 * kMargin, 0}).bottom;
    });
    const Page page = page_of(text, theme, options, natural_height);
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        draw_figure(canvas, view, theme, text, options.width, page.height,
                    natural_height - natural_panels);
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, &view.table, theme);
}

models::Result<void> write_comparison_chart(const CompareView& view, const Theme& theme,
                                            const ChartOptions& options,
                                            const std::filesystem::path& path) {
    const auto bytes = render_comparison_chart(view, theme, options);
    if (!bytes) return tl::unexpected(bytes.error());
    return write_file(path, *bytes);
}

}  // namespace profiler
