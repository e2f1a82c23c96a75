#pragma once

#include "profiler/charts/canvas.h"

#include <string>
#include <string_view>

namespace profiler {

/// Writes an <svg> element in which text stays text: it can be searched, selected and edited.
///
/// Text names its fonts and carries its width in Roboto (`textLength`), so that a viewer without
/// Roboto fits its own font into the same room. Shapes are the same as on a CairoCanvas.
class SvgCanvas : public Canvas {
public:
    /// `measuring` tells the widths of text and must outlive the canvas.
    SvgCanvas(double width, double height, Canvas& measuring);

    /// <title> and <desc>, for screen readers and search. Call it before anything is drawn.
    void describe(std::string_view title, std::string_view description);
    std::string finish() &&;

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
    double measure_text(const std::string& text, const TextStyle& style) override {
        return measuring_.measure(text, style);
    }

private:
    Canvas& measuring_;
    std::string svg_;
    int num_clips_ = 0;
};

/// For text and attribute values of XML and HTML.
std::string escape_xml(std::string_view text);

}  // namespace profiler
