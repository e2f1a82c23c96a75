#include "app/widgets/marks.h"

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

void draw_cross(ImDrawList* draw, ImVec2 center, float radius, ImU32 color) {
    const ImVec2 falling{radius, radius}, rising{radius, -radius};
    draw->AddLine(center - falling, center + falling, color, px(2));
    draw->AddLine(center - rising, center + rising, color, px(2));
}

void draw_phase_shape(ImDrawList* draw, profiler::PhaseKind phase, ImVec2 at, float radius,
                      ImU32 color) {
    using profiler::PhaseKind;
    const float r = radius * 0.9F;
    switch (phase) {
        case PhaseKind::kForward:
            draw->AddCircleFilled(at, radius, color);
            return;
        case PhaseKind::kBackward:
            draw->AddRectFilled({at.x - r, at.y - r}, {at.x + r, at.y + r}, color, px(1));
            return;
        case PhaseKind::kLoss:
            draw->AddTriangleFilled({at.x, at.y - radius * 1.1F}, {at.x + radius, at.y + r},
                                    {at.x - radius, at.y + r}, color);
            return;
        case PhaseKind::kOptimizer:
            draw->AddNgonFilled(at, radius * 1.2F, color, 4);
            return;
    }
}

void draw_torn_edge(ImDrawList* draw, ImVec2 from, ImVec2 to, ImVec2 depth, ImU32 ground) {
    const ImVec2 whole = to - from;
    const float length = std::hypot(whole.x, whole.y);
    const int count = std::max(1, static_cast<int>(length / px(8)));
    const ImVec2 tooth = whole / static_cast<float>(count);
    for (int i = 0; i < count; ++i) {
        const ImVec2 left = from + tooth * static_cast<float>(i);
        draw->AddTriangleFilled(left, left + tooth, left + tooth * 0.5F + depth, ground);
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

using profiler::Hatch;

float first_multiple(float from, float spacing) { return std::floor(from / spacing) * spacing; }

/// Lines lie at multiples of the spacing on the screen, so that the patterns of neighbours join.
void draw_lines(ImDrawList* draw, ImVec2 a, ImVec2 b, Hatch hatch, ImU32 ink, float spacing) {
    const float width = px(1), diagonal = spacing * std::sqrt(2.0F);
    if (hatch == Hatch::kDiagonal || hatch == Hatch::kCross) {
        for (float c = first_multiple(a.x + a.y, diagonal); c <= b.x + b.y; c += diagonal) {
            draw->AddLine({c - a.y, a.y}, {c - b.y, b.y}, ink, width);
        }
    }
    if (hatch == Hatch::kBackDiagonal || hatch == Hatch::kCross) {
        for (float c = first_multiple(a.x - b.y, diagonal); c <= b.x - a.y; c += diagonal) {
            draw->AddLine({c + a.y, a.y}, {c + b.y, b.y}, ink, width);
        }
    }
    if (hatch == Hatch::kHorizontal || hatch == Hatch::kGrid) {
        for (float y = first_multiple(a.y, spacing); y <= b.y; y += spacing) {
            draw->AddRectFilled({a.x, std::floor(y)}, {b.x, std::floor(y) + width}, ink);
        }
    }
    if (hatch == Hatch::kVertical || hatch == Hatch::kGrid) {
        for (float x = first_multiple(a.x, spacing); x <= b.x; x += spacing) {
            draw->AddRectFilled({std::floor(x), a.y}, {std::floor(x) + width, b.y}, ink);
        }
    }
}

void draw_dots(ImDrawList* draw, ImVec2 a, ImVec2 b, ImU32 ink, float spacing) {
    for (float y = first_multiple(a.y, spacing); y <= b.y; y += spacing) {
        for (float x = first_multiple(a.x, spacing); x <= b.x; x += spacing) {
            draw->AddCircleFilled({x, y}, px(1), ink, 6);
        }
    }
}

void draw_hatch(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, Hatch hatch, ImU32 ink,
                float spacing) {
    if (hatch == Hatch::kNone) return;
    draw->PushClipRect(upper_left, lower_right, true);
    if (hatch == Hatch::kDots) {
        draw_dots(draw, upper_left, lower_right, ink, spacing);
    } else {
        draw_lines(draw, upper_left, lower_right, hatch, ink, spacing);
    }
    draw->PopClipRect();
}

void fill_hatched(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 fill, Hatch hatch,
                  float alpha, float spacing) {
    draw->AddRectFilled(upper_left, lower_right, with_alpha(fill, alpha));
    draw_hatch(draw, upper_left, lower_right, hatch, with_alpha(ink_on(fill), 0.26F * alpha),
               spacing);
}

void fill_pale(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 color, Hatch hatch,
               float alpha, float spacing) {
    draw->AddRectFilled(upper_left, lower_right, with_alpha(color, 0.16F * alpha));
    draw_hatch(draw, upper_left, lower_right, hatch, with_alpha(color, 0.55F * alpha), spacing);
    draw->AddRect(upper_left, lower_right, with_alpha(color, alpha), 0, px(1));
}

}  // namespace

void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing) {
    fill_hatched(draw, upper_left, lower_right, category_color(category),
                 profiler::hatch_of(category), alpha, spacing);
}

void fill_recipe(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, size_t index) {
    fill_hatched(draw, upper_left, lower_right, recipe_color(index), profiler::recipe_hatch(index),
                 1, px(5));
}

void draw_recipe_marker(ImDrawList* draw, ImVec2 center, float radius, size_t index) {
    using profiler::Marker;
    const ImU32 color = recipe_color(index);
    const float r = radius;
    const auto triangle = [&](ImVec2 tip, ImVec2 side) {
        draw->AddTriangleFilled(center + tip, center - tip * 0.6F + side,
                                center - tip * 0.6F - side, color);
    };
    switch (profiler::recipe_marker(index)) {
        case Marker::kCircle:
            return draw->AddCircleFilled(center, r, color);
        case Marker::kSquare:
            return draw->AddRectFilled(center - ImVec2{r, r}, center + ImVec2{r, r}, color);
        case Marker::kDiamond:
            return draw->AddQuadFilled(center + ImVec2{0, -1.2F * r}, center + ImVec2{1.2F * r, 0},
                                       center + ImVec2{0, 1.2F * r}, center + ImVec2{-1.2F * r, 0},
                                       color);
        case Marker::kUp:
            return triangle({0, -1.2F * r}, {1.2F * r, 0});
        case Marker::kDown:
            return triangle({0, 1.2F * r}, {-1.2F * r, 0});
        case Marker::kLeft:
            return triangle({-1.2F * r, 0}, {0, -1.2F * r});
        case Marker::kCross:
            draw->AddLine(center + ImVec2{-r, -r}, center + ImVec2{r, r}, color, px(2));
            return draw->AddLine(center + ImVec2{-r, r}, center + ImVec2{r, -r}, color, px(2));
        case Marker::kPlus:
            draw->AddLine(center + ImVec2{-r, 0}, center + ImVec2{r, 0}, color, px(2));
            return draw->AddLine(center + ImVec2{0, -r}, center + ImVec2{0, r}, color, px(2));
    }
}

void fill_predicted(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 color) {
    fill_pale(draw, upper_left, lower_right, color, Hatch::kDiagonal, 1, px(6));
}

void fill_predicted_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                             profiler::Category category, float alpha, float spacing) {
    fill_pale(draw, upper_left, lower_right, category_color(category), profiler::hatch_of(category),
              alpha, spacing);
}

}  // namespace app
