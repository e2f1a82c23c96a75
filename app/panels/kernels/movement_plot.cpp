#include "app/panels/kernels/movement_plot.h"

#include "app/widgets/imgui_canvas.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::MovementView;
using profiler::RooflineMap;

constexpr float kReach = 5;     // of the mouse beyond a dot
constexpr float kLeastBox = 5;  // a smaller rectangle is a click
constexpr size_t kMostNames = 18;

/// The legend, and the plot below it. Returns what the plot shows.
RooflineMap lay_out(ImGuiCanvas& canvas, const MovementView& view, const profiler::Rect& area) {
    constexpr double kGap = 8;  // also above the plot, where a label of its axis stands half
    const double below = profiler::draw_roofline_legend(canvas, current_theme(), view,
                                                        {area.x, area.y, area.width}) +
                         kGap;
    const profiler::Rect plot =
        profiler::roofline_plot({area.x, below, area.width, std::max(1.0, area.bottom() - below)});
    return {view, {plot.x, plot.y, std::max(1.0, plot.width), std::max(1.0, plot.height)}};
}

/// The rectangle that is being drawn, or the one whose ops are marked.
void draw_box(ImDrawList* draw, const ImGuiCanvas& canvas, const RooflineMap& map,
              const profiler::RooflineOverlay& overlay, const MovementPicture& picture) {
    if (picture.drag_start) {
        const ImVec2 mouse = ImGui::GetMousePos();
        draw->AddRectFilled(*picture.drag_start, mouse, with_alpha(palette().accent, 0.14F));
        draw->AddRect(*picture.drag_start, mouse, palette().accent);
    } else if (const auto& box = overlay.box) {
        draw->AddRect(canvas.to_screen({map.x(box->low_x), map.y(box->high_y)}),
                      canvas.to_screen({map.x(box->high_x), map.y(box->low_y)}),
                      with_alpha(palette().accent, 0.8F), px(2), px(1.2F));
    }
}

MovementInput read_mouse(const ImGuiCanvas& canvas, const RooflineMap& map, bool is_over,
                         MovementPicture& picture) {
    MovementInput input;
    const ImVec2 mouse = ImGui::GetMousePos();
    const double reach = canvas.points(px(kReach));
    const bool inside = is_over && map.plot().contains(canvas.to_canvas(mouse));
    if (inside && !picture.drag_start) input.hovered = map.dot_at(canvas.to_canvas(mouse), reach);
    if (input.hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    if (inside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) picture.drag_start = mouse;
    if (!picture.drag_start) return input;
    if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) return input;
    const ImVec2 start = *picture.drag_start;
    picture.drag_start.reset();
    const ImVec2 way = mouse - start;
    if (std::max(std::abs(way.x), std::abs(way.y)) >= px(kLeastBox)) {
        input.box = map.box_between(canvas.to_canvas(start), canvas.to_canvas(mouse));
        return input;
    }
    input.clicked = map.dot_at(canvas.to_canvas(start), reach);
    input.clicked_nothing = !input.clicked;
    return input;
}

}  // namespace

ImVec2 MovementPicture::at(const MovementView& view, double x, double y) const {
    const RooflineMap map(view, to_rect(corner, size));
    return {static_cast<float>(map.x(x)), static_cast<float>(map.y(y))};
}

MovementInput draw_movement_plot(const MovementView& view, profiler::RooflineOverlay overlay,
                                 ImVec2 size, MovementPicture& picture) {
    if (view.traces.empty()) return {};
    size = {std::max(size.x, px(1)), std::max(size.y, px(1))};
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("##roofline", size);
    const bool is_over = ImGui::IsItemHovered();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->PushClipRect(corner, corner + size, true);
    ImGuiCanvas canvas(draw);
    const RooflineMap map = lay_out(canvas, view, canvas.to_canvas(corner, size));
    const profiler::Rect& plot = map.plot();
    picture.corner = canvas.to_screen({plot.x, plot.y});
    picture.size = {canvas.pixels(plot.width), canvas.pixels(plot.height)};
    const MovementInput input = read_mouse(canvas, map, is_over, picture);
    overlay.most_names = kMostNames;
    overlay.hovered = input.hovered;
    canvas.fill(plot, current_theme().plot);
    draw->AddRect(picture.corner, picture.corner + picture.size, palette().border);
    profiler::draw_roofline(canvas, current_theme(), map, overlay);
    draw_box(draw, canvas, map, overlay, picture);
    draw->PopClipRect();
    return input;
}

}  // namespace app
