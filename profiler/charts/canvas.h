#pragma once

#include "profiler/charts/fonts.h"
#include "profiler/view/axis.h"
#include "profiler/view/theme.h"

#include <span>
#include <string>
#include <string_view>

typedef struct _cairo cairo_t;  // as in cairo.h

/// What the charts draw with: rectangles, lines, text, hatches and markers in points, y downwards.
namespace profiler {

struct Point {
    double x = 0;
    double y = 0;
};

struct Rect {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;

    double right() const { return x + width; }
    double bottom() const { return y + height; }
    double center_x() const { return x + width / 2; }
    double center_y() const { return y + height / 2; }
};

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
};

/// Borrows `cairo` for its lifetime.
class Canvas {
public:
    explicit Canvas(cairo_t* cairo);

    void fill(const Rect& rect, Color color, double alpha = 1);
    void fill_rounded(const Rect& rect, double radius, Color color, double alpha = 1);
    void line(Point from, Point to, const LineStyle& style);
    void polyline(std::span<const Point> points, const LineStyle& style);
    void polygon(std::span<const Point> points, Color color, double alpha = 1);
    /// The pattern over what lies inside `points`, in `ink`.
    void hatch(std::span<const Point> points, Hatch hatch, Color ink, double alpha);
    void hatch(const Rect& rect, Hatch hatch, Color ink, double alpha);
    void marker(Marker marker, Point center, double radius, Color color);
    /// The marker's outline only, for what stands out.
    void ring(Point center, double radius, const LineStyle& style);

    /// `baseline` is where letters stand. Returns the advance.
    double text(Point baseline, std::string_view text, const TextStyle& style);
    double measure(std::string_view text, const TextStyle& style);
    MeasureText measurer(const TextStyle& style);

private:
    void set_color(Color color, double alpha);
    void set_font(const TextStyle& style);
    void trace(std::span<const Point> points);

    cairo_t* cairo_;
};

}  // namespace profiler
