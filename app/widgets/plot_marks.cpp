#include "app/widgets/plot_marks.h"

#include "app/widgets/imgui_canvas.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>

namespace app {

void draw_dashed_line(ImDrawList* draw, ImVec2 from, ImVec2 to, ImU32 color, float thickness) {
    const ImVec2 whole = to - from;
    const float length = std::hypot(whole.x, whole.y);
    for (float at = 0; at < length; at += px(9)) {
        const float end = std::min(length, at + px(5));
        draw->AddLine(from + whole * (at / length), from + whole * (end / length), color,
                      thickness);
    }
}

void text_on_plate(ImDrawList* draw, ImVec2 at, std::string_view content, ImU32 ink, ImU32 ground,
                   ImVec2 margin) {
    at = {std::round(at.x), std::round(at.y)};
    const ImVec2 size{text_width(content), ImGui::GetTextLineHeight()};
    const ImVec2 around{px(margin.x), px(margin.y)};
    draw->AddRectFilled(at - around, at + size + around, ground, px(3));
    draw->AddText(at, ink, content.data(), content.data() + content.size());
}

// ---- fills ----------------------------------------------------------------------------------

namespace {

void fill_hatched(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, profiler::Color fill,
                  profiler::Hatch hatch, double alpha, float spacing) {
    ImGuiCanvas canvas(draw);
    const profiler::Rect rect = canvas.to_canvas(upper_left, lower_right - upper_left);
    canvas.fill(rect, fill, alpha);
    canvas.hatch(rect, hatch, profiler::ink_on(fill), 0.26 * alpha, canvas.points(spacing));
}

}  // namespace

void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing) {
    fill_hatched(draw, upper_left, lower_right, profiler::color_of(current_theme(), category),
                 profiler::hatch_of(category), static_cast<double>(alpha), spacing);
}

void hatch_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                    profiler::Category category, float alpha, float spacing) {
    ImGuiCanvas canvas(draw);
    const profiler::Color fill = profiler::color_of(current_theme(), category);
    canvas.hatch(canvas.to_canvas(upper_left, lower_right - upper_left),
                 profiler::hatch_of(category), profiler::ink_on(fill),
                 0.26 * static_cast<double>(alpha), canvas.points(spacing));
}

void fill_recipe(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, size_t index) {
    fill_hatched(draw, upper_left, lower_right, profiler::recipe_color(current_theme(), index),
                 profiler::recipe_hatch(index), 1, px(5));
}

}  // namespace app
