#include "profiler/charts/figure.h"

#include <array>
#include <cmath>

namespace profiler {
namespace {

constexpr double kLegendGap = 18;
constexpr double kSwatch = 13;
constexpr double kMarkGap = 6;

/// Wrapped text; returns the y of the line below the last.
double draw_lines(Canvas& canvas, const Flow& flow, std::string_view text, const TextStyle& style,
                  int max_lines) {
    double y = flow.y;
    for (const std::string& line :
         wrap_label(text, flow.width, max_lines, canvas.measurer(style))) {
        y += style.size * 1.4;
        canvas.text({flow.x, y - style.size * 0.35}, line, style);
    }
    return y;
}

LineStyle grid_style(const Theme& theme) {
    return {.color = theme.text, .width = 1, .alpha = theme.is_dark ? 0.09 : 0.11};
}

}  // namespace

double draw_header(Canvas& canvas, const Theme& theme, const FigureText& text, const Flow& flow) {
    double y = flow.y;
    const auto add = [&](std::string_view words, const TextStyle& style, int max_lines) {
        if (!words.empty())
            y = draw_lines(canvas, {flow.x, y, flow.width}, words, style, max_lines);
    };
    add(text.title, {.size = 19, .weight = Weight::kBold, .color = theme.text}, 2);
    add(text.subtitle, {.size = 13, .color = theme.dim_text}, 2);
    if (!text.sentence.empty()) {
        y += 6;
        add(text.sentence, {.size = 14, .color = theme.text}, 3);
    }
    return y;
}

double draw_footer(Canvas& canvas, const Theme& theme, const FigureText& text, const Flow& flow) {
    const LineStyle rule{.color = theme.border, .width = 1};
    canvas.line({flow.x, flow.y}, {flow.x + flow.width, flow.y}, rule);
    double y = flow.y + 5;
    const TextStyle style{.size = 10.5, .color = theme.dim_text};
    for (const std::string& line : text.footer) {
        y = draw_lines(canvas, {flow.x, y, flow.width}, line, style, 2);
    }
    return y;
}

void draw_category_rect(Canvas& canvas, const Theme& theme, Category category, const Rect& rect,
                        double alpha) {
    const Color fill = color_of(theme, category);
    canvas.fill(rect, fill, alpha);
    canvas.hatch(rect, hatch_of(category), ink_on(fill), 0.28 * alpha);
}

void draw_outline(Canvas& canvas, const Rect& rect, const LineStyle& style) {
    const std::array<Point, 5> corners{{{rect.x, rect.y},
                                        {rect.right(), rect.y},
                                        {rect.right(), rect.bottom()},
                                        {rect.x, rect.bottom()},
                                        {rect.x, rect.y}}};
    canvas.polyline(corners, style);
}

LegendEntry marker_entry(Canvas& canvas, Marker marker, Color color, std::string_view name) {
    constexpr double kRadius = 6;
    return {.name = std::string(name),
            .mark_width = 11,
            .draw_mark = [&canvas, marker, color](Point at) {
                canvas.marker(marker, {at.x + kRadius, at.y + kRadius}, kRadius, color);
            }};
}

double draw_legend(Canvas& canvas, const Theme& theme, const std::vector<LegendEntry>& entries,
                   const Flow& flow, double most_name_width) {
    double x = flow.x;
    double y = flow.y;
    for (const LegendEntry& entry : entries) {
        const TextStyle style{.size = kTextSize,
                              .color = entry.draw_mark ? theme.text : theme.dim_text};
        const double mark = entry.draw_mark ? entry.mark_width + kMarkGap : 0;
        const std::string name = fit_label(entry.name, most_name_width, canvas.measurer(style));
        const double width = mark + canvas.measure(name, style);
        x += entry.space_before;
        if (x > flow.x && x + width > flow.x + flow.width) {
            x = flow.x;
            y += 20;
        }
        if (entry.draw_mark) entry.draw_mark({x, y + 2});
        canvas.text({x + mark, y + 12.5}, name, style);
        x += width + kLegendGap;
    }
    return entries.empty() ? flow.y : y + 18;
}

double draw_category_legend(Canvas& canvas, const Theme& theme,
                            const std::vector<Category>& categories, const Flow& flow) {
    std::vector<LegendEntry> entries;
    for (const Category category : categories) {
        entries.push_back(
            {.name = std::string(label_of(category)), .draw_mark = [&, category](Point at) {
                 draw_category_rect(canvas, theme, category, {at.x, at.y, kSwatch, kSwatch});
             }});
    }
    return draw_legend(canvas, theme, entries, flow);
}

void draw_panel_title(Canvas& canvas, const Theme& theme, Point baseline, double width,
                      std::string_view title, std::initializer_list<std::string_view> remarks) {
    const TextStyle bold{.size = 13, .weight = Weight::kBold, .color = theme.text};
    const TextStyle dim{.size = kLabelSize, .color = theme.dim_text};
    canvas.text(baseline, fit_label(title, width, canvas.measurer(bold)), bold);
    for (const std::string_view remark : remarks) {
        if (canvas.measure(remark, dim) > width) continue;
        canvas.text({baseline.x, baseline.y + 15}, remark, dim);
        return;
    }
}

void draw_x_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double start, double end) {
    const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
    for (const Tick& tick : ticks) {
        const double x = plot.x + (tick.value - start) / (end - start) * plot.width;
        canvas.line({x, plot.y}, {x, plot.bottom()}, grid_style(theme));
        canvas.text({x, plot.bottom() + 15}, tick.label, style);
    }
}

void draw_y_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double end) {
    const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    for (const Tick& tick : ticks) {
        const double y = plot.bottom() - tick.value / end * plot.height;
        canvas.line({plot.x, y}, {plot.right(), y}, grid_style(theme));
        canvas.text({plot.x - 7, y + 4}, tick.label, style);
    }
}

void draw_arrow(Canvas& canvas, Point from, Point to, double gap, const LineStyle& style) {
    constexpr double kLength = 5.5, kHalfWidth = 2.8;  // of the head
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    if (length <= 0) return;
    const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
    const Point tip{to.x - along.x * gap, to.y - along.y * gap};
    const Point back{tip.x - along.x * kLength, tip.y - along.y * kLength};
    const Point across{-along.y * kHalfWidth, along.x * kHalfWidth};
    if (length > gap + kLength) canvas.line(from, back, style);
    const std::array<Point, 3> head{
        {tip, {back.x + across.x, back.y + across.y}, {back.x - across.x, back.y - across.y}}};
    canvas.polygon(head, style.color, style.alpha);
}

void draw_empty_panel(Canvas& canvas, const Theme& theme, const Rect& plot, std::string_view text) {
    canvas.fill_rounded(plot, 4, mix(theme.plot, theme.text, 0.03));
    const TextStyle style{.size = kTextSize, .color = theme.dim_text, .align = 0.5};
    const auto lines = wrap_label(text, plot.width - 28, 6, canvas.measurer(style));
    const double leading = style.size * 1.4;
    double y = plot.center_y() - leading * static_cast<double>(lines.size()) / 2 + style.size;
    for (const std::string& line : lines) {
        canvas.text({plot.center_x(), y}, line, style);
        y += leading;
    }
}

}  // namespace profiler
