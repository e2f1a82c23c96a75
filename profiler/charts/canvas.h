#pragma once

#include "profiler/view/axis.h"
#include "profiler/view/rect.h"
#include "profiler/view/theme.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// What charts draw with: rectangles, lines, text, hatches and markers. Units are points; y grows
/// downwards.
namespace profiler {

enum class Weight : uint8_t { kRegular, kBold };

struct TextStyle {
    double size = 12;
    Weight weight = Weight::kRegular;
    Color color;
    double align = 0;  // 0 = starts at x, 0.5 = centred on it, 1 = ends at it
};

struct LineStyle {
    Color color;
    double width = 1;
    double alpha = 1;
    bool dashed = false;
    bool round_ends = false;
};

/// One of: CairoCanvas (PDF, PNG), SvgCanvas, and the window's app::ImGuiCanvas.
class Canvas {
public:
    virtual ~Canvas() = default;

    void fill(const Rect& rect, Color color, double alpha = 1) {
        fill_rounded(rect, 0, color, alpha);
    }
    virtual void fill_rounded(const Rect& rect, double radius, Color color, double alpha = 1) = 0;
    virtual void polygon(std::span<const Point> points, Color color, double alpha = 1) = 0;
    virtual void disc(Point center, double radius, Color color) = 0;
    /// The outline of a circle.
    virtual void ring(Point center, double radius, const LineStyle& style) = 0;
    virtual void polyline(std::span<const Point> points, const LineStyle& style) = 0;
    void line(Point from, Point to, const LineStyle& style);
    /// Draws the pattern inside the polygon `points`; its lines are `spacing` apart.
    void hatch(std::span<const Point> points, Hatch hatch, Color ink, double alpha,
               double spacing = kHatchSpacing);
    void hatch(const Rect& rect, Hatch hatch, Color ink, double alpha,
               double spacing = kHatchSpacing);
    void marker(Marker marker, Point center, double radius, Color color);

    /// Letters stand on `baseline`. Returns the width. The hyphen of a negative number becomes a
    /// minus sign.
    double text(Point baseline, std::string_view text, const TextStyle& style);
    double measure(std::string_view text, const TextStyle& style);
    MeasureText measurer(const TextStyle& style);

    static constexpr double kHatchSpacing = 6;

protected:
    struct Segment {
        Point from;
        Point to;  // equal to `from`: a dot
    };
    /// Lines cut off at the edge of `area`.
    virtual void stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                               const LineStyle& style) = 0;
    /// Text from `start` on, which is `width` wide.
    virtual void show_text(Point start, const std::string& text, double width,
                           const TextStyle& style) = 0;
    virtual double measure_text(const std::string& text, const TextStyle& style) = 0;
};

}  // namespace profiler
