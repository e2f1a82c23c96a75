#include "profiler/charts/comparison_chart.h"

#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/charts/throughput_chart.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace profiler {
namespace {

constexpr double kTitleHeight = 42;  // panel title and remark
constexpr double kAxisHeight = kBatchLabels;
constexpr double kPanelGap = 30;
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

BarValue peak_value(const CompareColumn& column) { return {column.peak_text, column.peak_change}; }

BarValue rate_value(const CompareColumn& column) {
    return {column.throughput_text, column.throughput_change};
}

void fit_axes(Canvas& canvas, const CompareView& view, ComparisonLayout& layout) {
    const auto fit_axis = [&](const Rect& plot, const auto& bar) {
        return fit_bar_axis(view, plot.width, kValueIndent, bar);
    };
    const double memory = fit_axis(layout.memory, [&](const CompareColumn& c) {
        return LabelledBar{static_cast<double>(c.peak_bytes), measure_value(canvas, peak_value(c))};
    });
    const double saved = fit_axis(layout.memory, [&](const CompareColumn& c) {
        const TextStyle style{.size = kLabelSize};
        return LabelledBar{
            static_cast<double>(c.saved_bytes),
            canvas.measure("saved " + c.saved_text + " " + c.saved_change.text, style)};
    });
    layout.memory_end_bytes = std::max(memory, saved);
    layout.batch_end = fit_axis(layout.batch, [&](const CompareColumn& c) {
        return LabelledBar{largest_batch(c), measure_value(canvas, batch_value(c))};
    });
    layout.rate_end = fit_axis(layout.throughput, [&](const CompareColumn& c) {
        return LabelledBar{c.sequences_per_s, measure_value(canvas, rate_value(c))};
    });
}

RowLayout layout_row(const ComparisonLayout& layout, const CompareColumn& column,
                     const Rect& band) {
    const double bar_height = std::min(band.height * 0.44, 30.0);
    const double top = band.center_y() - (bar_height + 5 + kSavedHeight + 4) / 2;
    const auto slot = [&](const Rect& plot, double end) {
        return BarSlot{.area = {plot.x, top, plot.width, bar_height}, .end = end};
    };
    const BarSlot memory = slot(layout.memory, layout.memory_end_bytes);
    BarSlot saved = memory;
    saved.area.y = top + bar_height + 5;
    saved.area.height = kSavedHeight;
    RowLayout row;
    row.name = {band.x, top, band.width, bar_height};
    row.memory_bar = memory.bar(static_cast<double>(column.peak_bytes));
    row.segments = segment_rects(memory, column.stack);
    row.saved_bar = saved.bar(static_cast<double>(column.saved_bytes));
    row.batch = slot(layout.batch, layout.batch_end);
    row.batch_bar = row.batch.bar(largest_batch(column));
    row.rate_bar = slot(layout.throughput, layout.rate_end).bar(column.sequences_per_s);
    return row;
}

}  // namespace

ComparisonLayout layout_comparison(Canvas& canvas, const CompareView& view, const Rect& area) {
    ComparisonLayout layout;
    const double names = name_width(canvas, view, area.width * 0.16);
    const double y_axis = view.has_throughput ? kRateLabels : 0;
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
        draw_stack(canvas, theme, column.stack, row.segments, {});
        draw_value(canvas, theme,
                   {row.memory_bar.right() + kValueIndent, middle_of(row.memory_bar)},
                   peak_value(column));
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
        draw_batch_bar(canvas, theme, column, layout.rows[i].batch);
        draw_value(canvas, theme, {bar.right() + kValueIndent, middle_of(bar)},
                   batch_value(column));
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
        draw_recipe_bar(canvas, theme, bar, column.color);
        draw_value(canvas, theme, {bar.right() + kValueIndent, middle_of(bar)}, rate_value(column));
    }
    draw_base_line(canvas, theme, plot);
}

/// A band shows the spread of the steps of each recipe, a ring and a label its best batch, a cross
/// the batch that did not fit.
void draw_throughput_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                           const ComparisonLayout& layout) {
    const Rect& plot = layout.throughput;
    draw_panel_title(canvas, theme, {plot.x - 36, layout.panel_title_y}, plot.width + 36,
                     "Throughput",
                     {view.columns.size() <= kMostBands
                          ? "sequences/s; band: slowest to fastest step; ring: best"
                          : "sequences/s; bars: slowest to fastest step; ring: best",
                      "sequences/s; ring: best", "sequences/s"});
    draw_throughput(canvas, theme, view, {}, plot);
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
