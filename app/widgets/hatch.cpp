#include "app/widgets/hatch.h"

#include "app/widgets/theme.h"

#include <cmath>

namespace app {
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

}  // namespace

void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing) {
    const ImU32 fill = category_color(category);
    draw->AddRectFilled(upper_left, lower_right, with_alpha(fill, alpha));
    const Hatch hatch = profiler::hatch_of(category);
    if (hatch == Hatch::kNone) return;
    const ImU32 ink = with_alpha(ink_on(fill), 0.26F * alpha);
    draw->PushClipRect(upper_left, lower_right, true);
    if (hatch == Hatch::kDots) {
        draw_dots(draw, upper_left, lower_right, ink, spacing);
    } else {
        draw_lines(draw, upper_left, lower_right, hatch, ink, spacing);
    }
    draw->PopClipRect();
}

void fill_predicted(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 color) {
    draw->AddRectFilled(upper_left, lower_right, with_alpha(color, 0.16F));
    draw->PushClipRect(upper_left, lower_right, true);
    draw_lines(draw, upper_left, lower_right, Hatch::kDiagonal, with_alpha(color, 0.55F), px(6));
    draw->PopClipRect();
    draw->AddRect(upper_left, lower_right, color, 0, px(1));
}

}  // namespace app
