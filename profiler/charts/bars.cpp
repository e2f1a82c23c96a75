#include "profiler/charts/bars.h"

#include "profiler/charts/figure.h"

#include <algorithm>
#include <array>

namespace profiler {
namespace {

constexpr double kValueGap = 6;
constexpr double kPale = 0.22;  // of what is not picked

TextStyle value_style(Color color) {
    return {.size = kTextSize, .weight = Weight::kBold, .color = color};
}

/// Pale with a pattern and an outline.
void draw_predicted(Canvas& canvas, const Rect& bar, Color color, Hatch hatch, double alpha) {
    canvas.fill(bar, color, 0.16 * alpha);
    canvas.hatch(bar, hatch, color, 0.55 * alpha);
    draw_outline(canvas, bar, {.color = color, .alpha = alpha});
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

/// A thin line of the background between a segment and the one before it.
void draw_gap(Canvas& canvas, const Theme& theme, const Rect& before, const Rect& segment) {
    const bool is_column = segment.x == before.x && segment.y != before.y;
    canvas.fill(is_column ? Rect{segment.x, segment.bottom() - 0.4, segment.width, 0.8}
                          : Rect{segment.x - 0.4, segment.y, 0.8, segment.height},
                theme.plot);
}

}  // namespace

// ---- where bars lie -------------------------------------------------------------------------

Rect BarSlot::part(double from, double to) const {
    if (grows_up) {
        const double height = (to - from) / end * area.height;
        return {area.x, area.bottom() - to / end * area.height, area.width, height};
    }
    return {area.x + from / end * area.width, area.y, (to - from) / end * area.width, area.height};
}

BarSlot BarSlot::thinner(double share) const {
    BarSlot slot = *this;
    if (grows_up) {
        slot.area.x += share * area.width;
        slot.area.width *= 1 - 2 * share;
    } else {
        slot.area.y += share * area.height;
        slot.area.height *= 1 - 2 * share;
    }
    return slot;
}

std::vector<Rect> segment_rects(const BarSlot& slot, const std::vector<StackSegment>& stack) {
    std::vector<Rect> rects;
    for (const StackSegment& segment : stack) {
        rects.push_back(slot.part(static_cast<double>(segment.start_bytes),
                                  static_cast<double>(segment.start_bytes + segment.size_bytes)));
    }
    return rects;
}

double fit_bar_axis(std::span<const LabelledBar> bars, double plot_width, double label_gap,
                    double least_share) {
    double end = 0;
    for (const LabelledBar& bar : bars) {
        const double room =
            std::max(plot_width - bar.label_width - label_gap, plot_width * least_share);
        end = std::max(end, bar.value * plot_width / room);
    }
    return end > 0 ? end : 1;
}

double fit_bar_axis(const CompareView& view, double plot_width, double label_gap,
                    const std::function<LabelledBar(const CompareColumn&)>& bar) {
    constexpr double kLeastBar = 0.2;  // of the plot
    std::vector<LabelledBar> bars;
    for (const CompareColumn& column : view.columns) bars.push_back(bar(column));
    return fit_bar_axis(bars, plot_width, label_gap, kLeastBar);
}

// ---- what bars look like --------------------------------------------------------------------

void draw_stack(Canvas& canvas, const Theme& theme, std::span<const StackSegment> stack,
                std::span<const Rect> rects, const StackStyle& style) {
    const auto is_pale = [&](const StackSegment& segment) {
        return style.picked && *style.picked != segment.category;
    };
    for (std::size_t i = 0; i < stack.size(); ++i) {
        const double alpha = is_pale(stack[i]) ? kPale : 1;
        if (style.is_predicted) {
            const Category category = stack[i].category;
            draw_predicted(canvas, rects[i], color_of(theme, category), hatch_of(category), alpha);
        } else {
            draw_category_rect(canvas, theme, stack[i].category, rects[i], alpha);
        }
        if (i > 0) draw_gap(canvas, theme, rects[i - 1], rects[i]);
    }
    for (std::size_t i = 0; i < stack.size(); ++i) {
        if (is_pale(stack[i])) continue;
        draw_segment_text(canvas, color_of(theme, stack[i].category), rects[i], stack[i].text);
    }
}

void draw_recipe_bar(Canvas& canvas, const Theme& theme, const Rect& bar, std::size_t index) {
    const Color fill = recipe_color(theme, index);
    canvas.fill(bar, fill);
    const Hatch hatch = recipe_hatch(index);
    if (hatch != Hatch::kNone && bar.width > 0) canvas.hatch(bar, hatch, ink_on(fill), 0.3);
}

void draw_torn_edge(Canvas& canvas, const Theme& theme, const BarSlot& slot, double value) {
    constexpr double kTooth = 7, kDepth = 5;
    const Rect bar = slot.bar(value);
    const Point from = slot.grows_up ? Point{bar.x, bar.y} : Point{bar.right(), bar.y};
    const double length = slot.grows_up ? bar.width : bar.height;
    const int count = std::max(1, static_cast<int>(length / kTooth));
    const double tooth = length / count;
    for (int i = 0; i < count; ++i) {
        const double start = tooth * i, middle = start + tooth / 2, end = start + tooth;
        const std::array<Point, 3> corners =
            slot.grows_up ? std::array<Point, 3>{{{from.x + start, from.y},
                                                  {from.x + end, from.y},
                                                  {from.x + middle, from.y + kDepth}}}
                          : std::array<Point, 3>{{{from.x, from.y + start},
                                                  {from.x, from.y + end},
                                                  {from.x - kDepth, from.y + middle}}};
        canvas.polygon(corners, theme.plot);
    }
}

void draw_batch_bar(Canvas& canvas, const Theme& theme, const CompareColumn& column,
                    const BarSlot& slot) {
    constexpr double kCut = 0.2;  // of the thickness, at each side
    const double predicted =
        column.planned ? static_cast<double>(column.planned->max_batch_size.value_or(0)) : 0;
    if (predicted > 0) {
        draw_predicted(canvas, slot.bar(predicted), recipe_color(theme, column.color),
                       Hatch::kDiagonal, 1);
    }
    if (!is_swept(column)) return;
    const BarSlot inner = predicted > 0 ? slot.thinner(kCut) : slot;
    const auto measured = static_cast<double>(column.largest_batch);
    draw_recipe_bar(canvas, theme, inner.bar(measured), column.color);
    const bool is_open = !column.max_batch_size && measured > 0;
    if (is_open) draw_torn_edge(canvas, theme, inner, measured);
}

// ---- what bars say --------------------------------------------------------------------------

bool is_swept(const CompareColumn& column) {
    return !column.curve.empty() || column.max_batch_size;
}

double largest_batch(const CompareColumn& column) {
    const int64_t planned = column.planned ? column.planned->max_batch_size.value_or(0) : 0;
    return static_cast<double>(std::max(column.largest_batch, planned));
}

BarValue batch_value(const CompareColumn& column) {
    if (is_swept(column) || !column.planned) {
        return {column.max_batch_text, column.max_batch_change};
    }
    return {max_batch_text(*column.planned), column.planned_max_batch_change, true};
}

Color tone_color(const Theme& theme, Tone tone) {
    return tone == Tone::kGood ? theme.good : tone == Tone::kBad ? theme.bad : theme.dim_text;
}

double measure_value(Canvas& canvas, const BarValue& value) {
    const double width = canvas.measure(value.text, value_style({}));
    if (value.change.empty()) return width;
    return width + kValueGap + canvas.measure(value.change.text, {.size = kTextSize});
}

double draw_value(Canvas& canvas, const Theme& theme, Point baseline, const BarValue& value) {
    const Color ink = value.is_predicted ? theme.dim_text : theme.text;
    const double width = canvas.text(baseline, value.text, value_style(ink));
    if (value.change.empty()) return width;
    const TextStyle style{.size = kTextSize, .color = tone_color(theme, value.change.tone)};
    return width + kValueGap +
           canvas.text({baseline.x + width + kValueGap, baseline.y}, value.change.text, style);
}

}  // namespace profiler
