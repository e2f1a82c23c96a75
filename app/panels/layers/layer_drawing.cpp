#include "app/panels/layers/layer_drawing.h"

#include "app/panels/layers/layer_labels.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::LayerColumn;
using profiler::LayerNode;
using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::Presence;

/// Height of the line that names a lane.
float lane_line_height() { return px(20); }

struct Box {
    ImVec2 upper;
    ImVec2 lower;

    float width() const { return lower.x - upper.x; }
    bool contains(ImVec2 point) const {
        return point.x >= upper.x && point.x < lower.x && point.y >= upper.y && point.y < lower.y;
    }
};

Box box_of(const LayerPicture& picture, const LayerColumn& column, bool in_backward) {
    const float gap = px(2);
    const float y = in_backward ? picture.bottom : picture.top - picture.box_height;
    return {{std::round(picture.x(column.left) + gap), y},
            {std::round(picture.x(column.right) - gap), y + picture.box_height}};
}

ImU32 class_color(profiler::OpClass op_class) {
    return activity_color(static_cast<profiler::ActivityClass>(op_class));
}

// ---- boxes ----------------------------------------------------------------------------------

constexpr float kSmallestText = 0.8F;  // of its usual size

/// In a smaller size where that makes it fit, else shortened.
void centered_text(ImDrawList* draw, const Box& box, float y, ImU32 color, float size,
                   const std::string& content, ImFont* face) {
    constexpr float kSmallest = kSmallestText;
    const float room = box.width() - px(4);
    for (const float shrink : {1.0F, 0.9F, kSmallest}) {
        const ScopedFont font(face, size * shrink);
        const float width = text_width(content);
        if (width > room && shrink > kSmallest) continue;
        const std::string shown = width > room ? fit_to(content, room) : content;
        const float x = (box.upper.x + box.lower.x - text_width(shown)) / 2;
        draw->AddText({std::round(x), std::round(y)}, color, shown.c_str());
        return;
    }
}

void draw_dashed_frame(ImDrawList* draw, const Box& box, ImU32 color) {
    const float length = px(5), gap = px(3);
    for (float x = box.upper.x; x < box.lower.x; x += length + gap) {
        const float end = std::min(x + length, box.lower.x);
        draw->AddLine({x, box.upper.y}, {end, box.upper.y}, color, px(1));
        draw->AddLine({x, box.lower.y}, {end, box.lower.y}, color, px(1));
    }
    for (float y = box.upper.y; y < box.lower.y; y += length + gap) {
        const float end = std::min(y + length, box.lower.y);
        draw->AddLine({box.upper.x, y}, {box.upper.x, end}, color, px(1));
        draw->AddLine({box.lower.x, y}, {box.lower.x, end}, color, px(1));
    }
}

struct BoxLook {
    float title_size = kSmallSize;
    bool is_hovered = false;
    bool is_picked = false;
    float strength = 1;
};

/// One size in which nearly all titles fit, so that the lane does not look ragged.
float title_size_of(const LayerView& view, const LayerPicture& picture) {
    for (const float shrink : {1.0F, 0.93F, 0.86F}) {
        const ScopedFont font(fonts().bold, kSmallSize * shrink);
        size_t fitting = 0;
        for (const LayerColumn& column : view.columns) {
            const float room = static_cast<float>(column.right - column.left) * picture.size.x;
            fitting += text_width(column.title) + px(8) <= room;
        }
        if (fitting * 10 >= view.columns.size() * 9) return kSmallSize * shrink;
    }
    return kSmallSize * 0.86F;
}

/// The side of the box that ribbons touch carries the colour of the class.
void draw_class_bar(ImDrawList* draw, const Box& box, ImU32 color, bool in_backward) {
    const float height = px(4);
    const float y = in_backward ? box.upper.y : box.lower.y - height;
    draw->AddRectFilled({box.upper.x, y}, {box.lower.x, y + height}, color, px(2),
                        in_backward ? ImDrawFlags_RoundTop : ImDrawFlags_RoundBottom);
}

/// At the side away from the ribbons. A box's width says nothing of its time: the bar does.
void draw_time_bar(ImDrawList* draw, const LayerPicture& picture, const Box& box,
                   const LayerNode& node, bool in_backward, float strength) {
    if (node.time_width <= 0) return;
    const float width = std::max(px(1), static_cast<float>(node.time_width) * picture.size.x);
    const float inset = px(2), height = px(3);
    const float y = in_backward ? box.lower.y - inset - height : box.upper.y + inset;
    const float right = std::min(box.upper.x + inset + width, box.lower.x - inset);
    draw->AddRectFilled({box.upper.x + inset, y}, {right, y + height},
                        with_alpha(palette().text, 0.6F * strength), px(1));
}

void draw_box(ImDrawList* draw, const LayerPicture& picture, const LayerColumn& column,
              bool in_backward, const BoxLook& look) {
    const LayerNode& node = in_backward ? column.backward : column.forward;
    if (!node.exists) return;
    const Box box = box_of(picture, column, in_backward);
    const ImU32 color = class_color(node.op_class);
    const bool is_ghost = node.presence == Presence::kDisappeared;
    const float strength = look.strength;
    if (is_ghost) {
        draw_dashed_frame(draw, box, with_alpha(palette().dim, 0.8F * strength));
    } else {
        draw->AddRectFilled(box.upper, box.lower, palette().raised, px(3));
        draw->AddRectFilled(box.upper, box.lower, with_alpha(color, 0.16F * strength), px(3));
        draw_class_bar(draw, box, with_alpha(color, strength), in_backward);
    }
    if (node.presence == Presence::kAdded) {
        draw->AddRect(box.upper, box.lower, with_alpha(palette().text, 0.9F * strength), px(3),
                      px(1.5F));
    }
    if (look.is_hovered || look.is_picked) {
        draw->AddRect(box.upper, box.lower, palette().accent, px(3),
                      px(look.is_picked ? 2.0F : 1.5F));
    }
    draw_time_bar(draw, picture, box, node, in_backward, strength);
    // Title and time stand between the time bar and the class bar.
    const float inner = picture.box_height - px(10);
    const float line = px(kSmallSize);
    const float top = box.upper.y + (in_backward ? px(4) : px(6));
    const float text_y = top + (inner - 2 * line - px(1)) / 2 - px(1);
    const ImU32 title = is_ghost ? palette().dim : palette().text;
    centered_text(draw, box, text_y, with_alpha(title, std::max(strength, 0.45F)), look.title_size,
                  column.title, is_ghost ? fonts().text : fonts().bold);
    const bool recomputes = !node.recomputed_text.empty();
    // The whole time, as in all boxes; of it what recomputes a forward, where there is room.
    std::string time = node.time_text;
    if (recomputes) {
        const std::string whole = fmt::format("{}{}" ICON_CLOCK " {}", time,
                                              time.empty() ? "" : ", ", node.recomputed_text);
        const ScopedFont small(fonts().text, 11.5F);
        const bool fits = text_width(whole) <= box.lower.x - box.upper.x - px(4);
        time = fits ? whole : ICON_CLOCK " " + time;
    }
    const ScopedFont least(fonts().text, 11.5F * kSmallestText);
    if (text_width(time) > box.width() - px(4)) return;  // half a number says nothing
    centered_text(draw, box, text_y + line + px(2),
                  with_alpha(recomputes ? palette().warn : palette().dim, strength), 11.5F, time,
                  fonts().text);
}

// ---- lanes ----------------------------------------------------------------------------------

std::string times_of(const std::array<std::string, 2>& text) {
    if (text[0].empty() || text[1].empty() || text[0] == text[1]) {
        return text[1].empty() ? text[0] : text[1];
    }
    return fmt::format("{} in A, {} in B", text[0], text[1]);
}

/// A line with an arrow head, and the name of the lane at its start.
void draw_lane(ImDrawList* draw, const LayerPicture& picture, float y, bool to_left,
               const std::string& name, const std::string& times) {
    const float left = picture.corner.x + px(2), right = picture.corner.x + picture.size.x - px(2);
    const float middle = y + lane_line_height() / 2;
    const ScopedFont font(fonts().text, kSmallSize);
    const float text_y = std::round(middle - ImGui::GetTextLineHeight() / 2);
    const float width = text_width(name) + (times.empty() ? 0 : px(8) + text_width(times));
    const float text_x = std::round(to_left ? right - width : left);
    draw->AddText({text_x, text_y}, palette().text, name.c_str());
    if (!times.empty()) {
        draw->AddText({text_x + text_width(name) + px(8), text_y}, palette().dim, times.c_str());
    }
    const ImU32 ink = with_alpha(palette().dim, 0.5F);
    const float from = to_left ? left : left + width + px(10);
    const float to = to_left ? right - width - px(10) : right;
    if (to - from < px(20)) return;
    draw->AddLine({from, middle}, {to, middle}, ink, px(1));
    const float tip = to_left ? from : to, back = to_left ? tip + px(7) : tip - px(7);
    draw->AddTriangleFilled({tip, middle}, {back, middle - px(4)}, {back, middle + px(4)},
                            with_alpha(palette().dim, 0.8F));
}

/// Marks where tensors come in that the layer before has made.
void draw_outside(ImDrawList* draw, const LayerPicture& picture, const LayerView& view) {
    if (view.outside_right <= 0) return;
    const Box box{{picture.corner.x + px(2), picture.top - picture.box_height},
                  {std::round(picture.x(view.outside_right) - px(2)), picture.top}};
    draw_dashed_frame(draw, box, with_alpha(palette().dim, 0.5F));
    centered_text(draw, box, box.upper.y + (picture.box_height - px(kSmallSize)) / 2, palette().dim,
                  kSmallSize, "input", fonts().text);
}

/// From where a ribbon ends to the other calls that are handed the tensor.
void draw_threads(ImDrawList* draw, const LayerPicture& picture, const LayerView& view,
                  const LayerRibbon& ribbon, float strength) {
    const float y = picture.bottom;
    const float from = picture.x((ribbon.bottom_left + ribbon.bottom_right) / 2);
    for (const size_t column : ribbon.also) {
        if (column >= view.columns.size()) continue;
        const float to = picture.x((view.columns[column].left + view.columns[column].right) / 2);
        const float rise = px(26);
        draw->AddBezierCubic({from, y - rise}, {from, y - px(4)}, {to, y - rise}, {to, y - px(1)},
                             with_alpha(category_color(ribbon.category), 0.9F * strength), px(1.5F),
                             24);
        draw->AddCircleFilled({to, y - px(2)}, px(2.5F),
                              with_alpha(category_color(ribbon.category), strength));
    }
}

// ---- focus ----------------------------------------------------------------------------------

bool touches(const LayerRibbon& ribbon, size_t column, bool in_backward) {
    if (!in_backward) return ribbon.producer == column;
    return ribbon.consumer == column ||
           std::find(ribbon.also.begin(), ribbon.also.end(), column) != ribbon.also.end();
}

/// Whether the ribbon stays bright while something is in focus.
bool in_focus(const LayerRibbon& ribbon, size_t index, const LayerMarks& marks) {
    if (marks.hovered.ribbon) return *marks.hovered.ribbon == index;
    if (marks.hovered.column) {
        return touches(ribbon, *marks.hovered.column, marks.hovered.in_backward);
    }
    if (marks.picked_ribbon) return *marks.picked_ribbon == index;
    if (marks.picked_call.column != profiler::kOutside) {
        return touches(ribbon, marks.picked_call.column, marks.picked_call.in_backward);
    }
    return !marks.category || *marks.category == ribbon.category;
}

std::vector<RibbonLook> looks_of(const LayerView& view, const LayerMarks& marks) {
    std::vector<RibbonLook> looks(view.ribbons.size());
    for (size_t i = 0; i < looks.size(); ++i) {
        looks[i].strength = in_focus(view.ribbons[i], i, marks) ? 1.0F : 0.32F;
        looks[i].is_hovered = marks.hovered.ribbon == i;
        looks[i].is_picked = marks.picked_ribbon == i;
        if (i < marks.arrived.size()) looks[i].arrived = marks.arrived[i];
    }
    return looks;
}

}  // namespace

LayerPicture lay_out_picture(ImVec2 corner, ImVec2 size) {
    LayerPicture picture{.corner = corner, .size = size};
    picture.box_height = std::round(px(44));
    picture.top = std::round(corner.y + lane_line_height() + px(2) + picture.box_height);
    picture.bottom =
        std::round(corner.y + size.y - lane_line_height() - px(2) - picture.box_height);
    return picture;
}

LayerHit hit_at(const LayerView& view, const LayerPicture& picture, ImVec2 point) {
    for (size_t i = 0; i < view.columns.size(); ++i) {
        const LayerColumn& column = view.columns[i];
        for (const bool in_backward : {false, true}) {
            const LayerNode& node = in_backward ? column.backward : column.forward;
            if (node.exists && box_of(picture, column, in_backward).contains(point)) {
                return {.ribbon = {}, .column = i, .in_backward = in_backward};
            }
        }
    }
    return {.ribbon = ribbon_at(picture, view, point), .column = {}, .in_backward = false};
}

void draw_layer_picture(ImDrawList* draw, const LayerView& view, const LayerPicture& picture,
                        const LayerMarks& marks) {
    std::string forward = times_of(view.forward_text);
    if (!view.box_times_text.empty()) forward += "; " + view.box_times_text;
    draw_lane(draw, picture, picture.corner.y, false, "forward", forward);
    std::string backward = times_of(view.backward_text);
    if (!view.recomputed_text.empty()) backward += ", " + view.recomputed_text;
    draw_lane(draw, picture, picture.bottom + picture.box_height + px(2), true, "backward",
              backward);
    draw_outside(draw, picture, view);
    const std::vector<RibbonLook> looks = looks_of(view, marks);
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        draw_ribbon(draw, picture, view.ribbons[i], looks[i]);
    }
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        draw_threads(draw, picture, view, view.ribbons[i], looks[i].strength);
    }
    const float title_size = title_size_of(view, picture);
    for (size_t i = 0; i < view.columns.size(); ++i) {
        for (const bool in_backward : {false, true}) {
            const LayerHit& hovered = marks.hovered;
            const bool is_picked =
                marks.picked_call.column == i && marks.picked_call.in_backward == in_backward;
            draw_box(draw, picture, view.columns[i], in_backward,
                     {.title_size = title_size,
                      .is_hovered = hovered.column == i && hovered.in_backward == in_backward,
                      .is_picked = is_picked});
        }
    }
    draw_ribbon_labels(draw, picture, view, looks);
}

}  // namespace app
