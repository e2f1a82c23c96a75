#include "app/widgets/marks.h"

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

}  // namespace app
