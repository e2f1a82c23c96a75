#include "profiler/charts/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace profiler {
namespace {

/// A hundredth of a point is finer than any screen or printer.
std::string number(double value) { return fmt::format("{}", std::round(value * 100) / 100 + 0.0); }

std::string point(Point p) { return number(p.x) + " " + number(p.y); }

/// H and V move along one axis, as the outlines of memory over time do.
std::string path(std::span<const Point> points) {
    std::string path;
    Point last;
    for (const Point& p : points) {
        if (path.empty()) {
            path = "M" + point(p);
        } else if (p.y == last.y) {
            path += "H" + number(p.x);
        } else if (p.x == last.x) {
            path += "V" + number(p.y);
        } else {
            path += "L" + point(p);
        }
        last = p;
    }
    return path;
}

std::string paint(Color color, double alpha) {
    const std::string opacity =
        alpha < 1 ? fmt::format(" fill-opacity=\"{}\"", number(alpha)) : std::string();
    return fmt::format("fill=\"{}\"{}", to_hex(color), opacity);
}

std::string pen(const LineStyle& style) {
    std::string pen = fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"",
                                  to_hex(style.color), number(style.width));
    if (style.alpha < 1) pen += fmt::format(" stroke-opacity=\"{}\"", number(style.alpha));
    if (style.dashed) pen += " stroke-dasharray=\"4 3\"";
    if (style.round_ends) pen += " stroke-linecap=\"round\"";
    return pen;
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, Canvas& measuring) : measuring_(measuring) {
    // Widths were measured without kerning; Arial and Liberation Sans are nearly as wide as Roboto.
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\" stroke-linejoin=\"round\" "
        "font-family=\"Roboto, Arial, 'Liberation Sans', Helvetica, sans-serif\" "
        "style=\"font-kerning:none\" xml:space=\"preserve\">\n",
        number(width), number(height));
}

void SvgCanvas::describe(std::string_view title, std::string_view description) {
    svg_ += fmt::format("<title>{}</title>\n<desc>{}</desc>\n", escape_xml(title),
                        escape_xml(description));
}

std::string SvgCanvas::finish() && { return std::move(svg_) + "</svg>\n"; }

void SvgCanvas::fill_rounded(const Rect& rect, double radius, Color color, double alpha) {
    const std::string corners =
        radius > 0 ? fmt::format(" rx=\"{}\"", number(radius)) : std::string();
    // A width below zero would make the file invalid.
    svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{} {}/>\n",
                        number(rect.x), number(rect.y), number(std::max(0.0, rect.width)),
                        number(std::max(0.0, rect.height)), corners, paint(color, alpha));
}

void SvgCanvas::polygon(std::span<const Point> points, Color color, double alpha) {
    svg_ += fmt::format("<path d=\"{}Z\" {}/>\n", path(points), paint(color, alpha));
}

void SvgCanvas::disc(Point center, double radius, Color color) {
    svg_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(center.x),
                        number(center.y), number(radius), paint(color, 1));
}

void SvgCanvas::ring(Point center, double radius, const LineStyle& style) {
    svg_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(center.x),
                        number(center.y), number(radius), pen(style));
}

void SvgCanvas::polyline(std::span<const Point> points, const LineStyle& style) {
    svg_ += fmt::format("<path d=\"{}\" {}/>\n", path(points), pen(style));
}

void SvgCanvas::stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                              const LineStyle& style) {
    std::string strokes;
    for (const Segment& line : lines) strokes += path(std::array{line.from, line.to});
    svg_ += fmt::format(
        "<clipPath id=\"clip{0}\"><path d=\"{1}Z\"/></clipPath>"
        "<path clip-path=\"url(#clip{0})\" d=\"{2}\" {3}/>\n",
        num_clips_++, path(area), strokes, pen(style));
}

void SvgCanvas::show_text(Point start, const std::string& text, double width,
                          const TextStyle& style) {
    // Anchored where the layout anchors it, in case a viewer ignores textLength.
    const char* anchor = style.align == 0 ? "" : style.align == 1 ? "end" : "middle";
    const double x = start.x + style.align * width;
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{} {} textLength=\"{}\"",
                        number(x), number(start.y), number(style.size),
                        style.weight == Weight::kBold ? " font-weight=\"700\"" : "",
                        *anchor ? fmt::format(" text-anchor=\"{}\"", anchor) : std::string(),
                        paint(style.color, 1), number(width));
    svg_ += fmt::format(" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n", escape_xml(text));
}

std::string escape_xml(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                // XML has no place for control characters, not even escaped.
                result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
        }
    }
    return result;
}

}  // namespace profiler
