#pragma once

#include "profiler/charts/canvas.h"

#include <imgui.h>

#include <string>
#include <vector>

/// Draws charts of profiler/charts in the window.
namespace app {

/// Points of the canvas lie on a draw list: a label of a chart (11 points) is as large as the
/// window's small text. Borrows `draw` for its lifetime.
class ImGuiCanvas : public profiler::Canvas {
public:
    explicit ImGuiCanvas(ImDrawList* draw);

    // Between pixels of the screen and points of the canvas.
    profiler::Point to_canvas(ImVec2 at) const { return {points(at.x), points(at.y)}; }
    profiler::Rect to_canvas(ImVec2 corner, ImVec2 size) const {
        return {points(corner.x), points(corner.y), points(size.x), points(size.y)};
    }
    ImVec2 to_screen(profiler::Point at) const { return {pixels(at.x), pixels(at.y)}; }
    double points(float length) const { return static_cast<double>(length / pixels_per_point_); }
    float pixels(double length) const { return static_cast<float>(length) * pixels_per_point_; }

    void fill_rounded(const profiler::Rect& rect, double radius, profiler::Color color,
                      double alpha = 1) override;
    void polygon(std::span<const profiler::Point> corners, profiler::Color color,
                 double alpha = 1) override;
    void disc(profiler::Point center, double radius, profiler::Color color) override;
    void ring(profiler::Point center, double radius, const profiler::LineStyle& style) override;
    void polyline(std::span<const profiler::Point> line, const profiler::LineStyle& style) override;

protected:
    void stroke_inside(std::span<const profiler::Point> area, std::span<const Segment> lines,
                       const profiler::LineStyle& style) override;
    void show_text(profiler::Point start, const std::string& text, double width,
                   const profiler::TextStyle& style) override;
    double measure_text(const std::string& text, const profiler::TextStyle& style) override;

private:
    float font_size(const profiler::TextStyle& style) const;

    ImDrawList* draw_;
    float pixels_per_point_;
};

/// A marker of a chart among the window's own items. `radius` is in pixels of the screen.
void draw_marker(ImDrawList* draw, profiler::Marker marker, ImVec2 center, float radius,
                 profiler::Color color);

}  // namespace app
