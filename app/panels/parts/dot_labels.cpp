#include "app/panels/parts/dot_labels.h"

#include "app/widgets/fonts.h"
#include "app/widgets/marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace app {
namespace {

constexpr float kMostWidth_em = 22;

/// Where a label may stand, the best places first: shares of its size to the left of and above the
/// dot.
struct Place {
    float left = 0;
    float up = 0;
    float x = 0;  // direction of the gap to the dot
    float y = 0;
};
constexpr std::array<Place, 8> kPlaces{{{0, 0.5F, 1, 0},
                                        {1, 0.5F, -1, 0},
                                        {0, 1, 0.7F, -0.7F},
                                        {1, 1, -0.7F, -0.7F},
                                        {0, 0, 0.7F, 0.7F},
                                        {1, 0, -0.7F, 0.7F},
                                        {0.5F, 1, 0, -1},
                                        {0.5F, 0, 0, 1}}};

/// The best free place; nullopt: none. Only a bold label may cover dots.
std::optional<LabelArea> place_label(const DotLabel& label, ImVec2 size,
                                     const std::vector<LabelArea>& taken,
                                     const std::vector<ImVec2>& dots, const LabelArea& frame) {
    std::optional<LabelArea> best;
    long fewest = 0;
    const float gap = label.radius + px(4);
    for (const Place& place : kPlaces) {
        const ImVec2 low{std::round(label.dot.x - place.left * size.x + place.x * gap),
                         std::round(label.dot.y - place.up * size.y + place.y * gap)};
        const LabelArea box{low, {low.x + size.x, low.y + size.y}};
        const bool is_inside = box.low.x >= frame.low.x && box.high.x <= frame.high.x &&
                               box.low.y >= frame.low.y && box.high.y <= frame.high.y;
        if (!is_inside) continue;
        if (std::any_of(taken.begin(), taken.end(),
                        [&](const LabelArea& other) { return box.overlaps(other); })) {
            continue;
        }
        const long covered = std::count_if(dots.begin(), dots.end(),
                                           [&](ImVec2 dot) { return box.contains(dot, px(2)); });
        if (best && covered >= fewest) continue;
        best = box;
        fewest = covered;
    }
    return fewest > 0 && !label.is_bold ? std::nullopt : best;
}

/// From the edge of the dot to the label: which of several dots it names.
void draw_leader(ImDrawList* draw, const DotLabel& label, const LabelArea& box) {
    const ImVec2 near{std::clamp(label.dot.x, box.low.x, box.high.x),
                      std::clamp(label.dot.y, box.low.y, box.high.y)};
    const ImVec2 way = near - label.dot;
    const float length = std::hypot(way.x, way.y);
    if (length <= label.radius) return;
    draw->AddLine(label.dot + way * (label.radius / length), near, label.color, px(1));
}

}  // namespace

void draw_dot_labels(ImDrawList* draw, const std::vector<DotLabel>& labels,
                     const std::vector<ImVec2>& dots, const LabelArea& frame,
                     std::vector<LabelArea> taken) {
    for (const DotLabel& label : labels) {
        const ScopedFont font(label.is_bold ? fonts().bold : fonts().text, kSmallSize);
        const std::string name = fit_to(label.text, em(kMostWidth_em));
        const float badge = label.badge.empty() ? 0 : letter_badge_size() + px(4);
        const float shape = label.shape ? px(12) : 0;
        const ImVec2 whole{text_width(name) + badge + shape + px(6),
                           ImGui::GetTextLineHeight() + px(2)};
        const auto box = place_label(label, whole, taken, dots, frame);
        if (!box) continue;
        taken.push_back(*box);
        draw_leader(draw, label, *box);
        draw->AddRectFilled(box->low, box->high, with_alpha(palette().plot, 0.82F), px(2));
        ImVec2 at{box->low.x + px(3), box->low.y + px(1)};
        if (badge > 0) {
            draw_letter_badge(draw, at, label.badge.c_str(), label.badge_color);
            at.x += badge;
        }
        if (label.shape) {
            // The edge keeps the shape from looking like one more dot.
            draw->AddRect(box->low, box->high, with_alpha(palette().dim, 0.4F), px(2));
            const ImVec2 center{at.x + px(4), at.y + ImGui::GetTextLineHeight() / 2};
            draw_phase_shape(draw, *label.shape, center, px(3.75F), label.shape_color);
            at.x += shape;
        }
        draw->AddText(at, label.color, name.c_str());
    }
}

}  // namespace app
