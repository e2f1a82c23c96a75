#include "profiler/charts/canvas.h"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace profiler {
namespace {

constexpr double kHatchSpacing = 6;
constexpr double kPi = std::numbers::pi;

class ScopedState {
public:
    explicit ScopedState(cairo_t* cairo) : cairo_(cairo) { cairo_save(cairo_); }
    ~ScopedState() { cairo_restore(cairo_); }
    ScopedState(const ScopedState&) = delete;
    ScopedState& operator=(const ScopedState&) = delete;

private:
    cairo_t* cairo_;
};

Rect bounds_of(std::span<const Point> points) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Point low{kInfinity, kInfinity};
    Point high{-kInfinity, -kInfinity};
    for (const Point& p : points) {
        low = {std::min(low.x, p.x), std::min(low.y, p.y)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    return {low.x, low.y, high.x - low.x, high.y - low.y};
}

double first_multiple(double from, double spacing) { return std::floor(from / spacing) * spacing; }

/// Lines at multiples of the spacing in page coordinates, so that neighbours' patterns join.
void trace_hatch(cairo_t* cairo, const Rect& r, Hatch hatch) {
    const bool rising = hatch == Hatch::kDiagonal || hatch == Hatch::kCross;
    const bool falling = hatch == Hatch::kBackDiagonal || hatch == Hatch::kCross;
    const bool rows = hatch == Hatch::kHorizontal || hatch == Hatch::kGrid;
    const bool columns = hatch == Hatch::kVertical || hatch == Hatch::kGrid;
    // x + y and x - y are constant along the diagonals.
    constexpr double kDiagonal = kHatchSpacing * std::numbers::sqrt2;
    if (rising) {
        for (double c = first_multiple(r.x + r.y, kDiagonal); c <= r.right() + r.bottom();
             c += kDiagonal) {
            cairo_move_to(cairo, c - r.y, r.y);
            cairo_line_to(cairo, c - r.bottom(), r.bottom());
        }
    }
    if (falling) {
        for (double c = first_multiple(r.x - r.bottom(), kDiagonal); c <= r.right() - r.y;
             c += kDiagonal) {
            cairo_move_to(cairo, c + r.y, r.y);
            cairo_line_to(cairo, c + r.bottom(), r.bottom());
        }
    }
    if (rows) {
        for (double y = first_multiple(r.y, kHatchSpacing); y <= r.bottom(); y += kHatchSpacing) {
            cairo_move_to(cairo, r.x, y);
            cairo_line_to(cairo, r.right(), y);
        }
    }
    if (columns) {
        for (double x = first_multiple(r.x, kHatchSpacing); x <= r.right(); x += kHatchSpacing) {
            cairo_move_to(cairo, x, r.y);
            cairo_line_to(cairo, x, r.bottom());
        }
    }
    if (hatch == Hatch::kDots) {  // strokes of no length with round ends
        for (double y = first_multiple(r.y, kHatchSpacing); y <= r.bottom(); y += kHatchSpacing) {
            for (double x = first_multiple(r.x, kHatchSpacing); x <= r.right();
                 x += kHatchSpacing) {
                cairo_move_to(cairo, x, y);
                cairo_line_to(cairo, x, y);
            }
        }
    }
}

void trace_rounded(cairo_t* cairo, const Rect& r, double radius) {
    radius = std::min({radius, r.width / 2, r.height / 2});
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, r.right() - radius, r.y + radius, radius, -kPi / 2, 0);
    cairo_arc(cairo, r.right() - radius, r.bottom() - radius, radius, 0, kPi / 2);
    cairo_arc(cairo, r.x + radius, r.bottom() - radius, radius, kPi / 2, kPi);
    cairo_arc(cairo, r.x + radius, r.y + radius, radius, kPi, 3 * kPi / 2);
    cairo_close_path(cairo);
}

/// A triangle's corners, the first at `angle`.
std::array<Point, 3> triangle(Point center, double radius, double angle) {
    std::array<Point, 3> corners;
    for (std::size_t i = 0; i < corners.size(); ++i) {
        const double a = angle + static_cast<double>(i) * 2 * kPi / 3;
        corners[i] = {center.x + 1.25 * radius * std::cos(a),
                      center.y + 1.25 * radius * std::sin(a)};
    }
    return corners;
}

/// A number's hyphen becomes a minus sign, as wide as the plus of its neighbours.
std::string typeset(std::string_view text) {
    const bool is_negative = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
    return is_negative ? "−" + std::string(text.substr(1)) : std::string(text);
}

}  // namespace

Canvas::Canvas(cairo_t* cairo) : cairo_(cairo) {
    // Positions of letters must not depend on the resolution: no hinting, exact advances.
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(cairo_, options);
    cairo_font_options_destroy(options);
    cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
}

void Canvas::set_color(Color color, double alpha) {
    cairo_set_source_rgba(cairo_, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

void Canvas::trace(std::span<const Point> points) {
    cairo_new_path(cairo_);
    for (const Point& p : points) cairo_line_to(cairo_, p.x, p.y);
}

void Canvas::fill(const Rect& rect, Color color, double alpha) {
    set_color(color, alpha);
    cairo_rectangle(cairo_, rect.x, rect.y, rect.width, rect.height);
    cairo_fill(cairo_);
}

void Canvas::fill_rounded(const Rect& rect, double radius, Color color, double alpha) {
    set_color(color, alpha);
    trace_rounded(cairo_, rect, radius);
    cairo_fill(cairo_);
}

void Canvas::line(Point from, Point to, const LineStyle& style) {
    const std::array<Point, 2> ends{from, to};
    polyline(ends, style);
}

void Canvas::polyline(std::span<const Point> points, const LineStyle& style) {
    const ScopedState state(cairo_);
    set_color(style.color, style.alpha);
    cairo_set_line_width(cairo_, style.width);
    constexpr std::array<double, 2> kDashes{4, 3};
    if (style.dashed) cairo_set_dash(cairo_, kDashes.data(), static_cast<int>(kDashes.size()), 0);
    trace(points);
    cairo_stroke(cairo_);
}

void Canvas::polygon(std::span<const Point> points, Color color, double alpha) {
    set_color(color, alpha);
    trace(points);
    cairo_close_path(cairo_);
    cairo_fill(cairo_);
}

void Canvas::hatch(std::span<const Point> points, Hatch hatch, Color ink, double alpha) {
    if (hatch == Hatch::kNone || points.empty()) return;
    const ScopedState state(cairo_);
    trace(points);
    cairo_close_path(cairo_);
    cairo_clip(cairo_);
    trace_hatch(cairo_, bounds_of(points), hatch);
    set_color(ink, alpha);
    cairo_set_line_width(cairo_, hatch == Hatch::kDots ? 1.8 : 0.8);
    cairo_set_line_cap(cairo_, hatch == Hatch::kDots ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
    cairo_stroke(cairo_);
}

void Canvas::hatch(const Rect& rect, Hatch pattern, Color ink, double alpha) {
    const std::array<Point, 4> corners{{{rect.x, rect.y},
                                        {rect.right(), rect.y},
                                        {rect.right(), rect.bottom()},
                                        {rect.x, rect.bottom()}}};
    hatch(std::span<const Point>(corners), pattern, ink, alpha);
}

void Canvas::marker(Marker marker, Point c, double radius, Color color) {
    const double r = radius * 0.9;
    const LineStyle stroke{.color = color, .width = radius * 0.6};
    switch (marker) {
        case Marker::kCircle:
            set_color(color, 1);
            cairo_new_path(cairo_);
            cairo_arc(cairo_, c.x, c.y, radius, 0, 2 * kPi);
            cairo_fill(cairo_);
            return;
        case Marker::kSquare:
            return fill({c.x - r, c.y - r, 2 * r, 2 * r}, color);
        case Marker::kDiamond: {
            const double d = radius * 1.25;
            const std::array<Point, 4> p{
                {{c.x, c.y - d}, {c.x + d, c.y}, {c.x, c.y + d}, {c.x - d, c.y}}};
            return polygon(p, color);
        }
        case Marker::kUp:
            return polygon(triangle(c, radius, -kPi / 2), color);
        case Marker::kDown:
            return polygon(triangle(c, radius, kPi / 2), color);
        case Marker::kLeft:
            return polygon(triangle(c, radius, kPi), color);
        case Marker::kCross:
            line({c.x - r, c.y - r}, {c.x + r, c.y + r}, stroke);
            return line({c.x - r, c.y + r}, {c.x + r, c.y - r}, stroke);
        case Marker::kPlus:
            line({c.x - radius, c.y}, {c.x + radius, c.y}, stroke);
            return line({c.x, c.y - radius}, {c.x, c.y + radius}, stroke);
    }
}

void Canvas::ring(Point center, double radius, const LineStyle& style) {
    const ScopedState state(cairo_);
    set_color(style.color, style.alpha);
    cairo_set_line_width(cairo_, style.width);
    cairo_new_path(cairo_);
    cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * kPi);
    cairo_stroke(cairo_);
}

void Canvas::set_font(const TextStyle& style) {
    cairo_set_font_face(cairo_, chart_font(style.weight));
    cairo_set_font_size(cairo_, style.size);
}

double Canvas::measure(std::string_view text, const TextStyle& style) {
    set_font(style);
    cairo_text_extents_t extents;
    cairo_text_extents(cairo_, typeset(text).c_str(), &extents);
    return extents.x_advance;
}

MeasureText Canvas::measurer(const TextStyle& style) {
    return [this, style](std::string_view text) { return measure(text, style); };
}

double Canvas::text(Point baseline, std::string_view text, const TextStyle& style) {
    if (text.empty()) return 0;
    const double width = measure(text, style);
    set_color(style.color, 1);
    cairo_move_to(cairo_, baseline.x - style.align * width, baseline.y);
    cairo_show_text(cairo_, typeset(text).c_str());
    cairo_new_path(cairo_);
    return width;
}

}  // namespace profiler
