#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

constexpr double kRoofHeight = 520;
constexpr double kRateSpace = 78;
constexpr double kLargestRadius = 15;
constexpr double kSmallestRadius = 3;
constexpr std::size_t kMostRoofLabels = 40;

FigureText describe(const MovementView& view, const MovementCaption& caption,
                    const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? "Roofline of the step's ops" : options.title;
    text.subtitle = caption.workload;
    text.sentence = view.headline.empty() ? view.traces.front().per_layer : view.headline;
    if (!caption.source.empty()) text.footer.push_back(caption.source + ".");
    for (const std::string& note : view.notes) text.footer.push_back("Note: " + note);
    text.footer.emplace_back(
        view.has_times ? "Area: time in the step. An op without arithmetic stands at the left, as "
                         "far below the roof as its bandwidth is below the card's."
                       : "Area: least time on the card. Logical ops have no times; each stands at "
                         "its limit.");
    text.footer.emplace_back(
        "Bytes: each element of all inputs and outputs once. Drawn by "
        "Temposcope.");
    return text;
}

/// Maps logarithmic axes onto the plot.
class RoofPlot {
public:
    RoofPlot(const MovementView& view, const Rect& plot) : view_(view), plot_(plot) {}

    double x(double value) const {
        return plot_.x + plot_.width * share(value, view_.first_x, view_.last_x);
    }
    double y(double value) const {
        return plot_.bottom() - plot_.height * share(value, view_.first_y, view_.last_y);
    }
    double intensity_at(double pixel) const {
        return view_.first_x *
               std::pow(view_.last_x / view_.first_x, (pixel - plot_.x) / plot_.width);
    }
    Point at(const MovementDot& dot) const { return {x(dot.x), y(dot.y)}; }
    const Rect& rect() const { return plot_; }

private:
    static double share(double value, double first, double last) {
        return std::log(value / first) / std::log(last / first);
    }
    const MovementView& view_;
    Rect plot_;
};

double radius_of(const MovementDot& dot) {
    return std::max(kSmallestRadius, kLargestRadius * dot.radius);
}

double draw_legend(Canvas& canvas, const Theme& theme, const MovementView& view, const Flow& flow) {
    const TextStyle style{.size = kTextSize, .color = theme.text};
    double x = flow.x;
    const auto add = [&](Marker marker, Color color, std::string_view name) {
        canvas.marker(marker, {x + 6, flow.y + 8}, 6, color);
        x += 17 + canvas.text({x + 17, flow.y + 12.5}, name, style) + 18;
    };
    std::array<bool, kOpClassNames.size()> has_class{};
    std::array<bool, kPhaseKindNames.size()> has_phase{};
    for (const MovementViewRow& row : view.traces.front().rows) {
        if (row.row.op_class) has_class[static_cast<std::size_t>(*row.row.op_class)] = true;
        if (row.row.phase) has_phase[static_cast<std::size_t>(*row.row.phase)] = true;
    }
    for (std::size_t i = 0; i < has_class.size(); ++i) {
        const ActivityClass of = activity_class_of(static_cast<OpClass>(i));
        if (has_class[i]) add(Marker::kCircle, color_of(theme, of), label_of(of));
    }
    x += 16;
    for (std::size_t i = 0; i < has_phase.size(); ++i) {
        const auto phase = static_cast<PhaseKind>(i);
        if (has_phase[i]) add(marker_of(phase), theme.dim_text, name_of(phase));
    }
    return flow.y + 18;
}

void draw_axes(Canvas& canvas, const Theme& theme, const MovementView& view, const RoofPlot& map) {
    const Rect& plot = map.rect();
    const LineStyle grid{.color = theme.text, .width = 1, .alpha = theme.is_dark ? 0.09 : 0.11};
    const TextStyle below{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
    const TextStyle left{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    for (const Tick& tick : view.x_ticks) {
        canvas.line({map.x(tick.value), plot.y}, {map.x(tick.value), plot.bottom()}, grid);
        canvas.text({map.x(tick.value), plot.bottom() + 15}, tick.label, below);
    }
    for (const Tick& tick : view.y_ticks) {
        canvas.line({plot.x, map.y(tick.value)}, {plot.right(), map.y(tick.value)}, grid);
        canvas.text({plot.x - 7, map.y(tick.value) + 4}, tick.label, left);
    }
    canvas.text({plot.center_x(), plot.bottom() + 32}, "flop per byte", below);
    if (!view.has_gutter) return;
    const double edge = map.x(view.gutter_x / 0.55);
    canvas.fill({plot.x, plot.y, edge - plot.x, plot.height}, theme.text, 0.035);
    canvas.text({map.x(view.gutter_x), plot.bottom() + 15}, "no arithmetic", below);
}

/// Returns where the label of the peak stands.
Rect draw_roof(Canvas& canvas, const Theme& theme, const MovementView& view, const RoofPlot& map) {
    if (view.peaks.bytes_per_s <= 0) return {};
    const Rect& plot = map.rect();
    const LineStyle style{.color = theme.text, .width = 1.8, .alpha = 0.75};
    const double knee = view.ridge > 0 ? std::min(view.ridge, view.last_x) : view.last_x;
    // From where the slope enters the plot.
    const double first = std::max(view.first_x, view.first_y / view.peaks.bytes_per_s);
    if (first >= knee) return {};
    std::vector<Point> roof{{map.x(first), map.y(roof_at(view.peaks, first))},
                            {map.x(knee), map.y(roof_at(view.peaks, knee))}};
    if (knee < view.last_x) roof.push_back({plot.right(), roof.back().y});
    canvas.polyline(roof, style);
    const TextStyle label{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    Rect peak_label;
    if (view.peaks.flop_per_s > 0) {
        const Point at{plot.right() - 6, map.y(view.peaks.flop_per_s) - 22};
        const std::string text =
            fmt::format("{}: {}", view.peaks.name, format_amount(view.peaks.flop_per_s, "flop/s"));
        const double width = canvas.text(at, text, label);
        peak_label = {at.x - width, at.y - 11, width, 15};
    }
    const double middle = std::sqrt(first * knee);
    canvas.text({map.x(middle) - 10, map.y(roof_at(view.peaks, middle)) - 4},
                format_amount(view.peaks.bytes_per_s, "B/s"), label);
    return peak_label;
}

void draw_dots(Canvas& canvas, const Theme& theme, const MovementTrace& trace,
               const RoofPlot& map) {
    for (const MovementDot& dot : trace.dots) {
        const MovementRow& row = trace.rows[dot.row].row;
        const Color color =
            color_of(theme, activity_class_of(row.op_class.value_or(OpClass::kOther)));
        const Marker marker = marker_of(row.phase.value_or(PhaseKind::kForward));
        canvas.marker(marker, map.at(dot), radius_of(dot) + 1.2, theme.plot);
        canvas.marker(marker, map.at(dot), radius_of(dot), color);
    }
}

bool overlap(const Rect& a, const Rect& b) {
    return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

/// Places names beside dots, neither on the roof nor on another name.
class NamePlacer {
public:
    NamePlacer(const MovementView& view, const RoofPlot& map, const Rect& peak_label)
        : view_(view), map_(map), taken_{peak_label} {
        for (const MovementDot& dot : view.traces.front().dots) {
            const Point at = map.at(dot);
            const double r = radius_of(dot) * 0.7;
            taken_.push_back({at.x - r, at.y - r, 2 * r, 2 * r});
        }
    }

    /// Where the name's baseline begins; empty: there is no room.
    std::optional<Point> place(const MovementDot& dot, double width) {
        const Point at = map_.at(dot);
        const double r = radius_of(dot) + 4, near = r * 0.7, left = at.x - width;
        const std::array<Point, 6> places{{{at.x + r, at.y + 4},
                                           {at.x + near, at.y + r * 0.8 + 8},
                                           {left - r, at.y + 4},
                                           {left - near, at.y + r * 0.8 + 8},
                                           {at.x + near, at.y - r * 0.8},
                                           {left - near, at.y - r * 0.8}}};
        for (const Point& one : places) {
            const Rect box{one.x - 1, one.y - 10, width + 2, 13};
            if (!is_free(box) || crosses_roof(box)) continue;
            taken_.push_back(box);
            return one;
        }
        return std::nullopt;
    }

private:
    bool is_free(const Rect& box) const {
        const Rect& plot = map_.rect();
        const bool is_inside = box.x > plot.x && box.right() < plot.right() && box.y > plot.y &&
                               box.bottom() < plot.bottom();
        return is_inside &&
               std::ranges::none_of(taken_, [&](const Rect& other) { return overlap(box, other); });
    }
    /// The roof rises from left to right.
    bool crosses_roof(const Rect& box) const {
        if (view_.peaks.bytes_per_s <= 0) return false;
        const auto roof_y = [&](double x) {
            return map_.y(roof_at(view_.peaks, map_.intensity_at(x)));
        };
        return box.y < roof_y(box.x) + 2 && box.bottom() > roof_y(box.right()) - 2;
    }

    const MovementView& view_;
    const RoofPlot& map_;
    std::vector<Rect> taken_;
};

/// The largest dots. Of several with one name in one place, one says it.
void draw_labels(Canvas& canvas, const Theme& theme, const MovementView& view, const RoofPlot& map,
                 const Rect& peak_label) {
    constexpr double kSamePlace = 12;
    const TextStyle style{.size = kLabelSize, .color = theme.text};
    const MovementTrace& trace = view.traces.front();
    NamePlacer placer(view, map, peak_label);
    std::vector<std::pair<std::string, Point>> named;
    for (std::size_t i = 0; i < std::min(kMostRoofLabels, trace.dots.size()); ++i) {
        const std::string& text = trace.rows[trace.dots[i].row].label;
        const Point at = map.at(trace.dots[i]);
        const bool is_named = std::ranges::any_of(named, [&](const auto& other) {
            return other.first == text &&
                   std::hypot(other.second.x - at.x, other.second.y - at.y) < kSamePlace;
        });
        if (is_named) continue;
        named.emplace_back(text, at);
        const double width = canvas.measure(text, style);
        const auto place = placer.place(trace.dots[i], width);
        if (!place) continue;
        canvas.fill_rounded({place->x - 1, place->y - 10, width + 2, 13}, 2, theme.plot, 0.7);
        canvas.text(*place, text, style);
    }
}

double draw_roofline(Canvas& canvas, const MovementView& view, const Theme& theme,
                     const FigureText& text, double width, double plot_height) {
    const double inner = width - 2 * kMargin;
    double y = draw_header(canvas, theme, text, {kMargin, 20, inner}) + 12;
    y = draw_legend(canvas, theme, view, {kMargin, y, inner}) + 14;
    const RoofPlot map(view, {kMargin + kRateSpace, y, inner - kRateSpace, plot_height});
    draw_axes(canvas, theme, view, map);
    const Rect peak_label = draw_roof(canvas, theme, view, map);
    draw_dots(canvas, theme, view.traces.front(), map);
    draw_labels(canvas, theme, view, map, peak_label);
    return draw_footer(canvas, theme, text, {kMargin, map.rect().bottom() + 46, inner}) + 16;
}

}  // namespace

models::Result<std::string> render_roofline_chart(const MovementView& view,
                                                  const MovementCaption& caption,
                                                  const Theme& theme, const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (view.traces.empty() || view.traces.front().dots.empty()) {
        return models::fail("There is nothing to draw: no op has both counted work and a time.");
    }
    const FigureText text = describe(view, caption, options);
    const double height = measure_height([&](Canvas& canvas) {
        return draw_roofline(canvas, view, theme, text, options.width, kRoofHeight);
    });
    const double extra = std::max(0.0, options.height - height);
    const Page page = page_of(text, theme, options, height);
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        draw_roofline(canvas, view, theme, text, options.width, kRoofHeight + extra);
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    const TextTable table = movement_table(view.traces.front().rows, MovementBy::kOp);
    return make_html_page(*drawn, text, &table, theme);
}

}  // namespace profiler
