#include "profiler/charts/comparison_panels.h"

#include "profiler/charts/figure.h"
#include "profiler/view/quantity_names.h"

#include <algorithm>

namespace profiler {
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

}  // namespace

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

void draw_rate_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                     const ComparisonLayout& layout) {
    const Rect& plot = layout.throughput;
    draw_panel_title(canvas, theme, {plot.x, layout.panel_title_y}, plot.width, "Throughput",
                     {"sequences/s of the captured steps (no sweep in these files)",
                      "sequences/s of the captured steps", "sequences/s"});
    const bool has_rates =
        std::any_of(view.columns.begin(), view.columns.end(),
                    [](const CompareColumn& c) { return c.sequences_per_s > 0; });
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

}  // namespace profiler
