#include "profiler/charts/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace profiler {
namespace {

using std::numbers::pi;

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

/// The multiples of `spacing` from just before `from` up to `to`. Hatches lie on them in page
/// coordinates, so that the patterns of neighbours join.
std::vector<double> multiples(double from, double to, double spacing) {
    std::vector<double> values;
    for (double v = std::floor(from / spacing) * spacing; v <= to; v += spacing) {
        values.push_back(v);
    }
    return values;
}

/// A triangle's corners, the first at `angle`.
std::array<Point, 3> triangle(Point center, double radius, double angle) {
    std::array<Point, 3> corners;
    for (std::size_t i = 0; i < corners.size(); ++i) {
        const double a = angle + static_cast<double>(i) * 2 * pi / 3;
        corners[i] = {center.x + 1.25 * radius * std::cos(a),
                      center.y + 1.25 * radius * std::sin(a)};
    }
    return corners;
}

/// The hyphen of a negative number becomes a minus sign, which is as wide as a plus.
std::string typeset(std::string_view text) {
    const bool is_negative = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
    return is_negative ? "−" + std::string(text.substr(1)) : std::string(text);
}

}  // namespace

void Canvas::line(Point from, Point to, const LineStyle& style) {
    const std::array<Point, 2> ends{from, to};
    polyline(ends, style);
}

void Canvas::hatch(std::span<const Point> points, Hatch hatch, Color ink, double alpha,
                   double spacing) {
    if (hatch == Hatch::kNone || points.empty()) return;
    const Rect r = bounds_of(points);
    std::vector<Segment> lines;
    // x + y and x - y are constant along the diagonals.
    const double diagonal = spacing * std::numbers::sqrt2;
    if (hatch == Hatch::kDiagonal || hatch == Hatch::kCross) {
        for (const double c : multiples(r.x + r.y, r.right() + r.bottom(), diagonal)) {
            lines.push_back({{c - r.y, r.y}, {c - r.bottom(), r.bottom()}});
        }
    }
    if (hatch == Hatch::kBackDiagonal || hatch == Hatch::kCross) {
        for (const double c : multiples(r.x - r.bottom(), r.right() - r.y, diagonal)) {
            lines.push_back({{c + r.y, r.y}, {c + r.bottom(), r.bottom()}});
        }
    }
    const std::vector<double> rows = multiples(r.y, r.bottom(), spacing);
    const std::vector<double> columns = multiples(r.x, r.right(), spacing);
    if (hatch == Hatch::kHorizontal || hatch == Hatch::kGrid) {
        for (const double y : rows) lines.push_back({{r.x, y}, {r.right(), y}});
    }
    if (hatch == Hatch::kVertical || hatch == Hatch::kGrid) {
        for (const double x : columns) lines.push_back({{x, r.y}, {x, r.bottom()}});
    }
    if (hatch == Hatch::kBricks) {
        // The rows and columns have global positions, so the dashes of neighbours meet.
        for (const double y : rows) {
            const bool is_odd = std::lround(y / spacing) % 2 != 0;
            for (const double x : columns) {
                const double left = is_odd ? x + spacing / 2 : x;
                lines.push_back({{left, y}, {left + spacing * 0.6, y}});
            }
        }
    }
    if (hatch == Hatch::kUprights) {
        for (const double x : columns) {
            const bool is_odd = std::lround(x / spacing) % 2 != 0;
            for (const double y : rows) {
                const double top = is_odd ? y + spacing / 2 : y;
                lines.push_back({{x, top}, {x, top + spacing * 0.6}});
            }
        }
    }
    if (hatch == Hatch::kPluses) {
        const double arm = spacing * 0.25;
        for (const double y : rows) {
            for (const double x : columns) {
                lines.push_back({{x - arm, y}, {x + arm, y}});
                lines.push_back({{x, y - arm}, {x, y + arm}});
            }
        }
    }
    if (hatch == Hatch::kDots) {
        for (const double y : rows) {
            for (const double x : columns) lines.push_back({{x, y}, {x, y}});
        }
    }
    const bool is_dotted = hatch == Hatch::kDots;
    stroke_inside(
        points, lines,
        {.color = ink, .width = is_dotted ? 1.8 : 0.8, .alpha = alpha, .round_ends = is_dotted});
}

void Canvas::hatch(const Rect& rect, Hatch pattern, Color ink, double alpha, double spacing) {
    const std::array<Point, 4> corners{{{rect.x, rect.y},
                                        {rect.right(), rect.y},
                                        {rect.right(), rect.bottom()},
                                        {rect.x, rect.bottom()}}};
    hatch(std::span<const Point>(corners), pattern, ink, alpha, spacing);
}

void Canvas::marker(Marker marker, Point c, double radius, Color color) {
    const double r = radius * 0.9;
    const LineStyle stroke{.color = color, .width = radius * 0.6};
    switch (marker) {
        case Marker::kCircle:
            return disc(c, radius, color);
        case Marker::kSquare:
            return fill({c.x - r, c.y - r, 2 * r, 2 * r}, color);
        case Marker::kDiamond: {
            const double d = radius * 1.25;
            const std::array<Point, 4> p{
                {{c.x, c.y - d}, {c.x + d, c.y}, {c.x, c.y + d}, {c.x - d, c.y}}};
            return polygon(p, color);
        }
        case Marker::kUp:
            return polygon(triangle(c, radius, -pi / 2), color);
        case Marker::kDown:
            return polygon(triangle(c, radius, pi / 2), color);
        case Marker::kLeft:
            return polygon(triangle(c, radius, pi), color);
        case Marker::kCross:
            line({c.x - r, c.y - r}, {c.x + r, c.y + r}, stroke);
            return line({c.x - r, c.y + r}, {c.x + r, c.y - r}, stroke);
        case Marker::kPlus:
            line({c.x - radius, c.y}, {c.x + radius, c.y}, stroke);
            return line({c.x, c.y - radius}, {c.x, c.y + radius}, stroke);
    }
}

double Canvas::text(Point baseline, std::string_view text, const TextStyle& style) {
    if (text.empty()) return 0;
    const std::string letters = typeset(text);
    const double width = measure_text(letters, style);
    show_text({baseline.x - style.align * width, baseline.y}, letters, width, style);
    return width;
}

double Canvas::measure(std::string_view text, const TextStyle& style) {
    return measure_text(typeset(text), style);
}

MeasureText Canvas::measurer(const TextStyle& style) {
    return [this, style](std::string_view text) { return measure(text, style); };
}

}  // namespace profiler
