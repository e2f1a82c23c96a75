#pragma once

#include "profiler/charts/canvas.h"

typedef struct _cairo cairo_t;  // as in cairo.h

namespace profiler {

/// Draws on any surface of Cairo: a page of PDF, the pixels of a PNG, or nothing but a recording,
/// to measure text. Borrows `cairo` for its lifetime.
class CairoCanvas : public Canvas {
public:
    explicit CairoCanvas(cairo_t* cairo);

    void fill_rounded(const Rect& rect, double radius, Color color, double alpha = 1) override;
    void polygon(std::span<const Point> points, Color color, double alpha = 1) override;
    void disc(Point center, double radius, Color color) override;
    void ring(Point center, double radius, const LineStyle& style) override;
    void polyline(std::span<const Point> points, const LineStyle& style) override;

protected:
    void stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                       const LineStyle& style) override;
    void show_text(Point start, const std::string& text, double width,
                   const TextStyle& style) override;
    double measure_text(const std::string& text, const TextStyle& style) override;

private:
    void set_color(Color color, double alpha);
    void set_font(const TextStyle& style);
    void trace(std::span<const Point> points);
    void stroke(const LineStyle& style);

    cairo_t* cairo_;
};

}  // namespace profiler
