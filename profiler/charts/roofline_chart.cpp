#include "profiler/charts/roofline_chart.h"

#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/html.h"
#include "profiler/trace/units.h"
#include "profiler/view/place_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

constexpr double kRoofHeight = 520;
constexpr double kRateSpace = 78;  // left of the plot
constexpr double kBelowPlot = 46;  // labels of the axis and its name

FigureText describe(const MovementView& view, const MovementCaption& caption,
                    const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? "Roofline of the step's ops" : options.title;
    text.subtitle = caption.workload;
    text.sentence = view.headline.empty() ? view.traces.front().per_layer : view.headline;
    if (!caption.source.empty()) text.footer.push_back(caption.source + ".");
    for (const std::string& note : view.notes) text.footer.push_back("Note: " + note);
    text.footer.emplace_back(
        view.has_times ? "Area: time in the step. Ops without FLOP (copies) are at the left edge; "
                         "their height shows how much of the bandwidth they use."
                       : "Area: least time on the GPU. Logical ops have no times; each is at "
                         "its limit.");
    text.footer.emplace_back(
        "Bytes: each element of all inputs and outputs once. Drawn by "
        "Temposcope.");
    return text;
}

double share_of(double value, double first, double last) {
    return std::log(value / first) / std::log(last / first);
}

double value_at(double share, double first, double last) {
    return first * std::pow(last / first, share);
}

}  // namespace

// ---- where things lie -----------------------------------------------------------------------

double RooflineMap::x(double flop_per_byte) const {
    return plot_.x + plot_.width * share_of(flop_per_byte, view_.first_x, view_.last_x);
}

double RooflineMap::y(double flop_per_s) const {
    return plot_.bottom() - plot_.height * share_of(flop_per_s, view_.first_y, view_.last_y);
}

double RooflineMap::radius_of(const MovementDot& dot) const {
    constexpr double kLargest = 15, kSmallest = 3;
    constexpr double kLargestShare = 0.03;  // of a small picture
    const double largest = std::min(kLargest, kLargestShare * std::min(plot_.width, plot_.height));
    return std::max(kSmallest, largest * dot.radius);
}

std::optional<RooflineDotId> RooflineMap::dot_at(Point point, double reach) const {
    std::optional<RooflineDotId> best;
    double least = 0;
    for (std::size_t t = 0; t < view_.traces.size(); ++t) {
        for (std::size_t i = 0; i < view_.traces[t].dots.size(); ++i) {
            const MovementDot& dot = view_.traces[t].dots[i];
            const Point center = at(dot);
            const double radius = radius_of(dot);
            const double distance = std::hypot(center.x - point.x, center.y - point.y);
            if (distance > radius + reach || (best && distance + radius >= least)) continue;
            least = distance + radius;
            best = RooflineDotId{t, i};
        }
    }
    return best;
}

RooflineBox RooflineMap::box_between(Point a, Point b) const {
    const auto x_at = [&](double pixel) {
        return value_at((pixel - plot_.x) / plot_.width, view_.first_x, view_.last_x);
    };
    const auto y_at = [&](double pixel) {
        return value_at((plot_.bottom() - pixel) / plot_.height, view_.first_y, view_.last_y);
    };
    return {x_at(std::min(a.x, b.x)), x_at(std::max(a.x, b.x)), y_at(std::max(a.y, b.y)),
            y_at(std::min(a.y, b.y))};
}

// ---- the picture ----------------------------------------------------------------------------

double draw_roofline_legend(Canvas& canvas, const Theme& theme, const MovementView& view,
                            const Flow& flow) {
    std::array<bool, kOpClassNames.size()> has_class{};
    std::array<bool, kPhaseKindNames.size()> has_phase{};
    for (const MovementTrace& trace : view.traces) {
        for (const MovementViewRow& row : trace.rows) {
            if (row.row.op_class) has_class[static_cast<std::size_t>(*row.row.op_class)] = true;
            if (row.row.phase) has_phase[static_cast<std::size_t>(*row.row.phase)] = true;
        }
    }
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < has_class.size(); ++i) {
        const CallClass of = call_class_of(static_cast<OpClass>(i));
        if (!has_class[i]) continue;
        entries.push_back(marker_entry(canvas, Marker::kCircle, color_of(theme, of), label_of(of)));
    }
    double space_before = 16;  // classes from phases
    for (std::size_t i = 0; i < has_phase.size(); ++i) {
        const auto phase = static_cast<PhaseKind>(i);
        if (!has_phase[i]) continue;
        entries.push_back(marker_entry(canvas, marker_of(phase), theme.dim_text, name_of(phase)));
        entries.back().space_before = std::exchange(space_before, 0.0);
    }
    if (view.traces.size() > 1) entries.push_back({.name = "area: time; pale: A; arrow: to B"});
    return draw_legend(canvas, theme, entries, flow);
}

Rect roofline_plot(const Rect& area) {
    return {area.x + kRateSpace, area.y, area.width - kRateSpace, area.height - kBelowPlot};
}

namespace {

/// The tick of ops without arithmetic, which a logarithmic axis has no place for: shorter where it
/// would cover the next one.
std::string gutter_label(Canvas& canvas, const RooflineMap& map, const TextStyle& style) {
    const MovementView& view = map.view();
    const std::string label = "no arithmetic";
    if (view.x_ticks.empty()) return label;
    const Tick& next = view.x_ticks.front();
    const double needed =
        (canvas.measure(label, style) + canvas.measure(next.label, style)) / 2 + 8;
    return needed < map.x(next.value) - map.x(view.gutter_x) ? label : "none";
}

void draw_axes(Canvas& canvas, const Theme& theme, const RooflineMap& map) {
    const MovementView& view = map.view();
    const Rect& plot = map.plot();
    const LineStyle grid{.color = theme.text, .width = 1, .alpha = theme.is_dark ? 0.09 : 0.11};
    const TextStyle below{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
    const TextStyle left{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    for (const Tick& tick : view.x_ticks) {
        canvas.line({map.x(tick.value), plot.y}, {map.x(tick.value), plot.bottom()}, grid);
        const double half = canvas.measure(tick.label, below) / 2;  // the last label is not cut off
        const double x = std::min(map.x(tick.value), plot.right() - half);
        canvas.text({x, plot.bottom() + 15}, tick.label, below);
    }
    for (const Tick& tick : view.y_ticks) {
        canvas.line({plot.x, map.y(tick.value)}, {plot.right(), map.y(tick.value)}, grid);
        canvas.text({plot.x - 7, map.y(tick.value) + 4}, tick.label, left);
    }
    canvas.text({plot.center_x(), plot.bottom() + 32}, "flop per byte", below);
    if (!view.has_gutter) return;
    const double edge = map.x(view.gutter_x / 0.55);
    canvas.fill({plot.x, plot.y, edge - plot.x, plot.height}, theme.text, 0.035);
    canvas.text({map.x(view.gutter_x), plot.bottom() + 15}, gutter_label(canvas, map, below),
                below);
}

/// The roof with its figures, which names of dots keep clear of.
struct Roof {
    std::vector<Point> line;
    std::vector<Rect> labels;
};

/// Where memory is the limit lies under the slope, where arithmetic is under the flat part.
Roof draw_roof(Canvas& canvas, const Theme& theme, const RooflineMap& map) {
    const MovementView& view = map.view();
    const Rect& plot = map.plot();
    Roof roof;
    if (view.peaks.bytes_per_s <= 0) return roof;
    const double knee = view.ridge > 0 ? std::min(view.ridge, view.last_x) : view.last_x;
    // From where the slope enters the plot.
    const double first = std::max(view.first_x, view.first_y / view.peaks.bytes_per_s);
    if (first >= knee) return roof;
    const auto roof_point = [&](double x) {
        return Point{map.x(x), map.y(roof_at(view.peaks, x))};
    };
    roof.line = {roof_point(first), roof_point(knee)};
    if (knee < view.last_x) {
        const Point ridge = roof.line.back();
        canvas.line(ridge, {ridge.x, plot.bottom()}, {.color = theme.text, .alpha = 0.16});
        roof.line.push_back({plot.right(), ridge.y});
    }
    canvas.polyline(roof.line, {.color = theme.text, .width = 1.8, .alpha = 0.75});
    const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    const Rect frame{plot.x + 4, plot.y + 2, plot.width - 10, plot.height - 2};
    // Above the roof, and left of `end`.
    const auto add_label = [&](Point end, double gap, const std::string& text) {
        const double width = canvas.measure(text, style);
        const Point above{end.x - width / 2, end.y};
        const auto place = place_label(above_point(above, gap, {width, 15}, frame),
                                       {.frame = frame, .taken = roof.labels});
        if (!place) return;
        canvas.text({place->right(), place->y + 11}, text, style);
        roof.labels.push_back(*place);
    };
    if (view.peaks.flop_per_s > 0) {
        add_label(
            {plot.right() - 6, map.y(view.peaks.flop_per_s)}, 18,
            fmt::format("{}: {}", view.peaks.name, format_amount(view.peaks.flop_per_s, "flop/s")));
    }
    const Point middle = roof_point(std::sqrt(first * knee));
    add_label({middle.x - 10, middle.y}, 0, format_amount(view.peaks.bytes_per_s, "B/s"));
    return roof;
}

bool is_pale(const RooflineOverlay& overlay, const MovementDot& dot) {
    return overlay.box && !overlay.box->contains(dot);
}

struct DotStyle {
    Marker marker = Marker::kCircle;
    Color color;
};

DotStyle style_of(const Theme& theme, const MovementTrace& trace, const MovementDot& dot) {
    const MovementRow& row = trace.rows[dot.row].row;
    return {marker_of(row.phase.value_or(PhaseKind::kForward)),
            color_of(theme, call_class_of(row.op_class.value_or(OpClass::kOther)))};
}

/// Of two traces A is faint, because B's dots are where the arrows end.
void draw_dot(Canvas& canvas, const Theme& theme, const RooflineMap& map,
              const RooflineOverlay& overlay, RooflineDotId id) {
    const MovementTrace& trace = map.view().traces[id.trace];
    const MovementDot& dot = trace.dots[id.dot];
    const auto [marker, color] = style_of(theme, trace, dot);
    const bool is_faint = map.view().traces.size() > 1 && id.trace == 0;
    const double strength = is_pale(overlay, dot) ? 0.14 : is_faint ? 0.38 : 1;
    const Point at = map.at(dot);
    const double radius = map.radius_of(dot);
    const bool is_selected = overlay.selected[id.trace] == dot.row;
    if (is_selected || overlay.hovered == id) {
        canvas.marker(marker, at, radius + 3.5, is_selected ? theme.accent : theme.text);
    }
    canvas.marker(marker, at, radius + 1.2, theme.plot);
    canvas.marker(marker, at, radius, mix(theme.plot, color, strength));
}

void draw_dots(Canvas& canvas, const Theme& theme, const RooflineMap& map,
               const RooflineOverlay& overlay) {
    for (std::size_t t = 0; t < map.view().traces.size(); ++t) {
        const std::size_t count = map.view().traces[t].dots.size();
        for (std::size_t i = 0; i < count; ++i) draw_dot(canvas, theme, map, overlay, {t, i});
    }
    if (overlay.hovered) draw_dot(canvas, theme, map, overlay, *overlay.hovered);
}

/// From each op of A to what it became in B.
void draw_arrows(Canvas& canvas, const RooflineMap& map, const RooflineOverlay& overlay) {
    constexpr double kLeastLength = 8;  // an op that moves less has no arrow
    if (map.view().traces.size() < 2) return;
    const std::vector<MovementDot>& dots = map.view().traces[0].dots;
    for (std::size_t i = 0; i < dots.size(); ++i) {
        if (!dots[i].other) continue;
        const MovementDot& other = map.view().traces[1].dots[*dots[i].other];
        const bool is_hovered =
            overlay.hovered && (*overlay.hovered == RooflineDotId{0, i} ||
                                *overlay.hovered == RooflineDotId{1, *dots[i].other});
        const double alpha = is_pale(overlay, dots[i]) ? 0.15 : is_hovered ? 1.0 : 0.6;
        const Point from = map.at(dots[i]), to = map.at(other);
        if (std::hypot(to.x - from.x, to.y - from.y) < kLeastLength) continue;
        draw_arrow(canvas, from, to, map.radius_of(other) + 1.3,
                   {.color = overlay.color_b, .width = 1.2, .alpha = alpha});
    }
}

// ---- names ----------------------------------------------------------------------------------

constexpr double kNameMargin = 2;
constexpr double kNameShape = 10;  // of the dot's shape before its name

struct DotName {
    const MovementDot* dot = nullptr;
    Point at;
    std::string text;
};

/// The largest dots of the last trace. Of several with one name in one place, one says it.
std::vector<DotName> names_of(const RooflineMap& map, const RooflineOverlay& overlay) {
    constexpr double kSamePlace = 12;
    const MovementTrace& trace = map.view().traces.back();
    std::vector<DotName> names;
    for (const MovementDot& dot : trace.dots) {
        if (names.size() >= overlay.most_names) break;
        if (is_pale(overlay, dot)) continue;
        const std::string& text = trace.rows[dot.row].label;
        const Point at = map.at(dot);
        const bool is_named = std::ranges::any_of(names, [&](const DotName& other) {
            return other.text == text &&
                   std::hypot(other.at.x - at.x, other.at.y - at.y) < kSamePlace;
        });
        if (!is_named) names.push_back({&dot, at, text});
    }
    return names;
}

LabelRoom room_for_names(const RooflineMap& map, const Roof& roof) {
    LabelRoom room{.frame = map.plot(), .taken = roof.labels};
    for (const MovementTrace& trace : map.view().traces) {
        for (const MovementDot& dot : trace.dots) {
            room.dots.push_back(square_around(map.at(dot), map.radius_of(dot) * 0.7));
        }
    }
    for (std::size_t i = 1; i < roof.line.size(); ++i) {
        room.lines.push_back({roof.line[i - 1], roof.line[i]});
    }
    return room;
}

/// A line from the edge of the dot to its name, and the dot's shape before it: which of dots in one
/// place it names.
void draw_name(Canvas& canvas, const Theme& theme, const RooflineMap& map, const DotName& name,
               const Rect& place) {
    const Point near{std::clamp(name.at.x, place.x, place.right()),
                     std::clamp(name.at.y, place.y, place.bottom())};
    const Point way{near.x - name.at.x, near.y - name.at.y};
    const double length = std::hypot(way.x, way.y);
    const double radius = map.radius_of(*name.dot);
    if (length > radius) {
        const double share = radius / length;
        canvas.line({name.at.x + way.x * share, name.at.y + way.y * share}, near,
                    {.color = theme.text});
    }
    canvas.fill_rounded(place, 2, theme.plot, 0.82);
    const auto [marker, color] = style_of(theme, map.view().traces.back(), *name.dot);
    canvas.marker(marker, {place.x + kNameMargin + 3.5, place.center_y()}, 3.2, color);
    canvas.text({place.x + kNameMargin + kNameShape, place.y + 10.5}, name.text,
                {.size = kLabelSize, .color = theme.text});
}

void draw_names(Canvas& canvas, const Theme& theme, const RooflineMap& map,
                const RooflineOverlay& overlay, const Roof& roof) {
    const std::vector<DotName> names = names_of(map, overlay);
    std::vector<LabelWish> wishes;
    for (const DotName& name : names) {
        const double width = canvas.measure(name.text, {.size = kLabelSize});
        wishes.push_back(beside_dot(name.at, map.radius_of(*name.dot) + 4,
                                    {width + kNameShape + 2 * kNameMargin, 14}));
    }
    const auto places = place_labels(wishes, room_for_names(map, roof));
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (places[i]) draw_name(canvas, theme, map, names[i], *places[i]);
    }
}

}  // namespace

void draw_roofline(Canvas& canvas, const Theme& theme, const RooflineMap& map,
                   const RooflineOverlay& overlay) {
    draw_axes(canvas, theme, map);
    const Roof roof = draw_roof(canvas, theme, map);
    draw_dots(canvas, theme, map, overlay);
    draw_arrows(canvas, map, overlay);
    draw_names(canvas, theme, map, overlay, roof);
}

// ---- the figure -----------------------------------------------------------------------------

namespace {

double draw_figure(Canvas& canvas, const MovementView& view, const Theme& theme,
                   const FigureText& text, double width, double plot_height) {
    const double inner = width - 2 * kMargin;
    double y = draw_header(canvas, theme, text, {kMargin, 20, inner}) + 12;
    y = draw_roofline_legend(canvas, theme, view, {kMargin, y, inner}) + 14;
    const Rect area{kMargin, y, inner, plot_height + kBelowPlot};
    draw_roofline(canvas, theme, RooflineMap(view, roofline_plot(area)), {});
    return draw_footer(canvas, theme, text, {kMargin, area.bottom(), inner}) + 16;
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
        return draw_figure(canvas, view, theme, text, options.width, kRoofHeight);
    });
    const double extra = std::max(0.0, options.height - height);
    const Page page = page_of(text, theme, options, height);
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        draw_figure(canvas, view, theme, text, options.width, kRoofHeight + extra);
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    const TextTable table = movement_table(view.traces.front().rows, MovementBy::kOp);
    return make_html_page(*drawn, text, &table, theme);
}

}  // namespace profiler
