#include "app/widgets/imgui_canvas.h"

#include "app/widgets/fonts.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace app {
namespace {

using profiler::LineStyle;
using profiler::Point;
using profiler::TextStyle;

constexpr float kLabelPoints = 11;  // profiler::kLabelSize

ImU32 ink_of(const LineStyle& style) {
    return to_u32(style.color, static_cast<float>(style.alpha));
}

ImFont* font_of(const TextStyle& style) {
    return style.weight == profiler::Weight::kBold ? fonts().bold : fonts().text;
}

ImVec2 rounded(ImVec2 at) { return {std::round(at.x), std::round(at.y)}; }

double cross_product(Point a, Point b) { return a.x * b.y - a.y * b.x; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }

/// Even-odd: whether a ray to the right crosses an odd number of edges.
bool is_inside(std::span<const Point> area, Point at) {
    bool inside = false;
    for (size_t i = 0, before = area.size() - 1; i < area.size(); before = i++) {
        const Point a = area[i], b = area[before];
        if ((a.y > at.y) == (b.y > at.y)) continue;
        if (at.x < a.x + (at.y - a.y) / (b.y - a.y) * (b.x - a.x)) inside = !inside;
    }
    return inside;
}

/// Finds the shares of the line at which it begins, ends, or crosses an edge of the polygon, in
/// ascending order. `cuts` is reused: a frame has thousands of lines.
void find_cuts(std::span<const Point> area, Point from, Point to, std::vector<double>& cuts) {
    cuts.assign({0, 1});
    for (size_t i = 0, before = area.size() - 1; i < area.size(); before = i++) {
        const Point edge = area[i] - area[before], way = to - from;
        const double sine = cross_product(way, edge);
        if (sine == 0) continue;  // parallel
        const double along_line = cross_product(area[before] - from, edge) / sine;
        const double along_edge = cross_product(area[before] - from, way) / sine;
        const bool crosses = along_edge >= 0 && along_edge <= 1;
        if (crosses && along_line > 0 && along_line < 1) cuts.push_back(along_line);
    }
    std::ranges::sort(cuts);
}

}  // namespace

ImGuiCanvas::ImGuiCanvas(ImDrawList* draw)
    : draw_(draw), pixels_per_point_(px(kSmallSize / kLabelPoints)) {}

void ImGuiCanvas::fill_rounded(const profiler::Rect& rect, double radius, profiler::Color color,
                               double alpha) {
    if (rect.width <= 0 || rect.height <= 0) return;
    const ImVec2 low = rounded(to_screen({rect.x, rect.y}));
    const ImVec2 high = rounded(to_screen({rect.right(), rect.bottom()}));
    draw_->AddRectFilled(low, {std::max(high.x, low.x + 1), std::max(high.y, low.y + 1)},
                         to_u32(color, static_cast<float>(alpha)), pixels(radius));
}

void ImGuiCanvas::polygon(std::span<const Point> corners, profiler::Color color, double alpha) {
    std::vector<ImVec2> path;
    double area = 0;
    for (size_t i = 0; i < corners.size(); ++i) {
        path.push_back(to_screen(corners[i]));
        area += cross_product(corners[i], corners[(i + 1) % corners.size()]);
    }
    if (area < 0) std::ranges::reverse(path);  // ImGui smooths edges that run clockwise
    draw_->AddConcavePolyFilled(path.data(), static_cast<int>(path.size()),
                                to_u32(color, static_cast<float>(alpha)));
}

void ImGuiCanvas::disc(Point center, double radius, profiler::Color color) {
    draw_->AddCircleFilled(to_screen(center), pixels(radius), to_u32(color));
}

void ImGuiCanvas::ring(Point center, double radius, const LineStyle& style) {
    draw_->AddCircle(to_screen(center), pixels(radius), ink_of(style), 0, pixels(style.width));
}

void ImGuiCanvas::polyline(std::span<const Point> line, const LineStyle& style) {
    std::vector<ImVec2> path;
    for (const Point& point : line) path.push_back(to_screen(point));
    const float width = pixels(style.width);
    const ImU32 ink = ink_of(style);
    if (style.dashed) {
        for (size_t i = 1; i < path.size(); ++i) {
            draw_dashed_line(draw_, path[i - 1], path[i], ink, width);
        }
        return;
    }
    const bool is_level = line.size() == 2 && (line[0].x == line[1].x || line[0].y == line[1].y);
    if (is_level) {  // sharp at whole pixels
        draw_->AddLine(rounded(path[0]), rounded(path[1]), ink, width);
    } else {
        draw_->AddPolyline(path.data(), static_cast<int>(path.size()), ink, width);
    }
    if (!style.round_ends || path.empty()) return;
    draw_->AddCircleFilled(path.front(), width / 2, ink);
    draw_->AddCircleFilled(path.back(), width / 2, ink);
}

void ImGuiCanvas::stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                                const LineStyle& style) {
    const ImU32 ink = ink_of(style);
    const float width = pixels(style.width);
    std::vector<double> cuts;
    for (const auto& [from, to] : lines) {
        if (from.x == to.x && from.y == to.y) {  // a dot
            if (is_inside(area, from)) draw_->AddCircleFilled(to_screen(from), width / 2, ink, 6);
            continue;
        }
        const Point start = from, way = to - from;
        const auto at = [&](double share) {
            return Point{start.x + share * way.x, start.y + share * way.y};
        };
        find_cuts(area, from, to, cuts);
        for (size_t i = 1; i < cuts.size(); ++i) {
            if (!is_inside(area, at((cuts[i - 1] + cuts[i]) / 2))) continue;
            draw_->AddLine(to_screen(at(cuts[i - 1])), to_screen(at(cuts[i])), ink, width);
        }
    }
}

float ImGuiCanvas::font_size(const TextStyle& style) const {
    return std::max(1.0F, std::round(pixels(style.size)));
}

void ImGuiCanvas::show_text(Point start, const std::string& text, double, const TextStyle& style) {
    ImFont* const font = font_of(style);
    const float size = font_size(style);
    const ImVec2 baseline = to_screen(start);
    const ImVec2 corner{baseline.x, baseline.y - font->GetFontBaked(size)->Ascent};
    draw_->AddText(font, size, rounded(corner), to_u32(style.color), text.data(),
                   text.data() + text.size());
}

double ImGuiCanvas::measure_text(const std::string& text, const TextStyle& style) {
    const ImVec2 size = font_of(style)->CalcTextSizeA(font_size(style), FLT_MAX, 0, text.data(),
                                                      text.data() + text.size());
    return points(size.x);
}

void draw_marker(ImDrawList* draw, profiler::Marker marker, ImVec2 center, float radius,
                 profiler::Color color) {
    ImGuiCanvas canvas(draw);
    canvas.marker(marker, canvas.to_canvas(center), canvas.points(radius), color);
}

}  // namespace app
