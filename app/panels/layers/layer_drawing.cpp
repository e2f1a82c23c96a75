#include "app/panels/layers/layer_drawing.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

namespace app {
namespace {

using profiler::LayerColumn;
using profiler::LayerNode;
using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::Presence;

/// Height of the line that names a lane.
float lane_line_height() { return px(20); }

using Box = ScreenBox;

Box box_of(const LayerPicture& picture, const LayerColumn& column, bool in_backward) {
    const float gap = px(2);
    const float y = in_backward ? picture.bottom : picture.top - picture.box_height;
    return {{std::round(picture.x(column.left) + gap), y},
            {std::round(picture.x(column.right) - gap), y + picture.box_height}};
}

ImU32 class_color(profiler::OpClass op_class) {
    return call_color(static_cast<profiler::CallClass>(op_class));
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

struct BoxStyle {
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
              bool in_backward, const BoxStyle& style) {
    const LayerNode& node = in_backward ? column.backward : column.forward;
    if (!node.exists) return;
    const Box box = box_of(picture, column, in_backward);
    const ImU32 color = class_color(node.op_class);
    const bool is_ghost = node.presence == Presence::kDisappeared;
    const float strength = style.strength;
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
    if (style.is_hovered || style.is_picked) {
        draw->AddRect(box.upper, box.lower, palette().accent, px(3),
                      px(style.is_picked ? 2.0F : 1.5F));
    }
    draw_time_bar(draw, picture, box, node, in_backward, strength);
    // Title and time stand between the time bar and the class bar.
    const float inner = picture.box_height - px(10);
    const float line = px(kSmallSize);
    const float top = box.upper.y + (in_backward ? px(4) : px(6));
    const float text_y = top + (inner - 2 * line - px(1)) / 2 - px(1);
    const ImU32 title = is_ghost ? palette().dim : palette().text;
    centered_text(draw, box, text_y, with_alpha(title, std::max(strength, 0.45F)), style.title_size,
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

// ---- labels ---------------------------------------------------------------------------------

struct Label {
    const LayerRibbon* ribbon = nullptr;
    float strength = 1;
    float name_width = 0;
    float size_width = 0;
};

struct Labels {
    ImDrawList* draw = nullptr;
    const LayerPicture& picture;
    std::vector<profiler::Rect> taken;
};

ImU32 name_color(const Label& label) {
    const LayerRibbon& ribbon = *label.ribbon;
    if (ribbon.presence == Presence::kDisappeared) {
        return with_alpha(palette().text, 0.85F * std::max(label.strength, 0.8F));
    }
    const ImU32 fill = category_color(ribbon.category);
    const ImU32 ink = ribbon.presence == Presence::kAdded ? ink_on(fill) : palette().text;
    return with_alpha(ink, std::max(label.strength, 0.7F));
}

ImU32 size_color(const Label& label) {
    if (label.ribbon->presence != Presence::kDisappeared) return name_color(label);
    return with_alpha(palette().good, std::max(label.strength, 0.8F));
}

// ---- labels inside a ribbon -----------------------------------------------------------------

/// Name above size.
bool draw_level(Labels& labels, const Label& label) {
    const LayerPicture& picture = labels.picture;
    const float line = ImGui::GetTextLineHeight(), gap = px(1);
    const float height = 2 * line + gap;
    if (picture.bottom - picture.top < height + px(8)) return false;
    const float y = std::round((picture.top + picture.bottom - height) / 2);
    const RibbonSpan upper = span_at(picture, *label.ribbon, y);
    const RibbonSpan lower = span_at(picture, *label.ribbon, y + height);
    const float left = std::max(upper.left, lower.left), right = std::min(upper.right, lower.right);
    const float width = std::max(label.name_width, label.size_width);
    if (right - left < width + px(8)) return false;
    const float middle = (left + right) / 2;
    labels.draw->AddText({std::round(middle - label.name_width / 2), y}, name_color(label),
                         label.ribbon->name.c_str());
    labels.draw->AddText({std::round(middle - label.size_width / 2), y + line + gap},
                         size_color(label), label.ribbon->size_text.c_str());
    labels.taken.push_back(to_rect({middle - width / 2, y}, {width, height}));
    return true;
}

/// A straight line along the middle of a ribbon, upwards.
struct Course {
    ImVec2 start;
    ImVec2 direction;
    float half_width = 0;  // of the ribbon around the line, at its narrowest
};

Course course_of(const LayerPicture& picture, const LayerRibbon& ribbon, float length) {
    const float middle_y = (picture.top + picture.bottom) / 2;
    const auto at = [&](float y) { return ImVec2{span_at(picture, ribbon, y).middle(), y}; };
    ImVec2 along{0, -1};
    for (int i = 0; i < 2; ++i) {  // a slanted line takes less height
        const float half = length * -along.y / 2;
        along = at(middle_y - half) - at(middle_y + half);
        const float size = std::sqrt(along.x * along.x + along.y * along.y);
        along = {along.x / size, along.y / size};
    }
    const float half = length * -along.y / 2;
    Course course{at(middle_y + half), along, 0};
    const float slope = along.x / along.y;
    course.half_width = 1e6F;
    for (const float share : {-1.0F, -0.5F, 0.0F, 0.5F, 1.0F}) {
        const float y = middle_y + half * share;
        const RibbonSpan span = span_at(picture, ribbon, y);
        const float x = course.start.x + slope * (y - course.start.y);
        const float room = std::min(x - span.left, span.right - x);
        course.half_width = std::min(course.half_width, room * -along.y);
    }
    return course;
}

/// Turns the text so that it runs along `direction`, its middle line through `start`. It is first
/// written at the left edge of the picture, because ImGui leaves out letters beyond the right edge.
void add_turned_text(const Labels& labels, ImVec2 start, ImVec2 direction, ImU32 color,
                     const std::string& content) {
    ImDrawList* draw = labels.draw;
    const int first = draw->VtxBuffer.Size;
    const ImVec2 written{std::round(labels.picture.corner.x), std::round(labels.picture.top)};
    const ImVec2 pivot{std::round(start.x), std::round(start.y)};
    draw->AddText(written, color, content.c_str());
    const float half = std::round(ImGui::GetTextLineHeight() / 2);
    const ImVec2 down{-direction.y, direction.x};
    for (int i = first; i < draw->VtxBuffer.Size; ++i) {
        ImVec2& position = draw->VtxBuffer[i].pos;
        const ImVec2 from = position - written;
        position = {pivot.x + direction.x * from.x + down.x * (from.y - half),
                    pivot.y + direction.y * from.x + down.y * (from.y - half)};
    }
}

/// The texts of a label as lines along a ribbon, and how long the lines are.
struct Lines {
    bool two = false;  // name and size beside each other, else one behind the other
    float length = 0;
};

/// How the label fits into a ribbon of this length; nullopt: not at all. A size without its name
/// says nothing.
std::optional<Lines> lines_within(const Label& label, float room) {
    const float both = label.name_width + px(6) + label.size_width;
    if (both <= room) return Lines{false, both};
    const float longer = std::max(label.name_width, label.size_width);
    return longer <= room ? std::optional(Lines{true, longer}) : std::nullopt;
}

void write_along(Labels& labels, const Label& label, const Lines& lines, const Course& course) {
    const ImVec2 along = course.direction, down{-along.y, along.x};
    const float line = ImGui::GetTextLineHeight();
    const auto point = [&](float far, float beside) {
        return course.start + along * far + down * beside;
    };
    // Hatches and ribbons that cross would hide strokes, a minus for one.
    const ImU32 ground = label.ribbon->presence == Presence::kAdded
                             ? category_color(label.ribbon->category)
                             : palette().plot;
    labels.draw->AddLine(point(-px(2), 0), point(lines.length + px(2), 0),
                         with_alpha(ground, 0.6F * label.strength),
                         (lines.two ? 2 : 1) * line - px(3));
    const float beside = lines.two ? line / 2 : 0;
    const float name_at = lines.two ? (lines.length - label.name_width) / 2 : 0;
    const float size_at =
        lines.two ? (lines.length - label.size_width) / 2 : label.name_width + px(6);
    add_turned_text(labels, point(name_at, -beside), along, name_color(label), label.ribbon->name);
    add_turned_text(labels, point(size_at, beside), along, size_color(label),
                    label.ribbon->size_text);
    const ImVec2 end = point(lines.length, 0);
    const float half = lines.two ? line : line / 2;
    labels.taken.push_back(
        to_rect({std::min(course.start.x, end.x) - half, std::min(course.start.y, end.y)},
                {std::abs(course.start.x - end.x) + 2 * half, std::abs(course.start.y - end.y)}));
}

/// Along the ribbon, where it is wide and straight enough.
bool draw_along(Labels& labels, const Label& label) {
    const float line = ImGui::GetTextLineHeight() - px(3);
    const float room = labels.picture.bottom - labels.picture.top - px(12);
    const auto lines = lines_within(label, room);
    if (!lines) return false;
    const Course course = course_of(labels.picture, *label.ribbon, lines->length);
    if (course.half_width < (lines->two ? line : line / 2)) return false;
    write_along(labels, label, *lines, course);
    return true;
}

// ---- labels over a ribbon -------------------------------------------------------------------

/// Short lines along the ribbon, out of its plate: which of neighbours the plate names.
void draw_ties(const Labels& labels, const LayerRibbon& ribbon, float plate_top, float plate_bottom,
               ImU32 color) {
    const LayerPicture& picture = labels.picture;
    const auto at = [&](float y) {
        y = std::clamp(y, picture.top, picture.bottom);
        return ImVec2{span_at(picture, ribbon, y).middle(), y};
    };
    for (const auto& [from, to] :
         {std::pair(plate_top, plate_top - px(9)), std::pair(plate_bottom, plate_bottom + px(9))}) {
        labels.draw->AddLine(at(from), at(to), color, px(2));
        labels.draw->AddCircleFilled(at(to), px(3), color);
    }
}

/// Name above size.
ImVec2 plate_size(const Label& label) {
    return {std::max(label.name_width, label.size_width) + px(12),
            2 * ImGui::GetTextLineHeight() + px(6)};
}

/// On the ribbon, at several heights.
profiler::LabelWish plate_wish(const LayerPicture& picture, const Label& label) {
    const ImVec2 size = plate_size(label);
    profiler::LabelWish wish{.size = to_size(size)};
    for (const float share : {0.5F, 0.34F, 0.66F, 0.2F, 0.8F}) {
        const float y = picture.top + (picture.bottom - picture.top) * share;
        const float middle = span_at(picture, *label.ribbon, y).middle();
        const float x = std::clamp(middle - size.x / 2, picture.corner.x,
                                   picture.corner.x + picture.size.x - size.x);
        wish.places.push_back({x, y - size.y / 2});
    }
    return wish;
}

void draw_plate(const Labels& labels, const Label& label, ImVec2 low) {
    const LayerRibbon& ribbon = *label.ribbon;
    const ImVec2 high = low + plate_size(label);
    const float alpha = std::max(label.strength, 0.7F);
    const ImU32 ink = ribbon.presence == Presence::kAdded ? palette().bad : palette().good;
    draw_ties(labels, ribbon, low.y, high.y, with_alpha(ink, alpha));
    labels.draw->AddRectFilled(low, high, with_alpha(palette().popup, 0.94F), px(4));
    labels.draw->AddRect(low, high, with_alpha(ink, 0.55F * alpha), px(4), px(1));
    const auto add = [&](float width, float top, ImU32 color, const std::string& content) {
        labels.draw->AddText({std::round((low.x + high.x - width) / 2), top},
                             with_alpha(color, alpha), content.c_str());
    };
    add(label.name_width, low.y + px(2), palette().text, ribbon.name);
    add(label.size_width, low.y + px(3) + ImGui::GetTextLineHeight(), ink, ribbon.size_text);
}

/// Labels on plates of their own, up to a few, where they meet no other label.
void draw_plates(const Labels& labels, const std::vector<Label>& left) {
    constexpr size_t kMostPlates = 8;
    const LayerPicture& picture = labels.picture;
    std::vector<profiler::LabelWish> wishes;
    for (const Label& label : left) wishes.push_back(plate_wish(picture, label));
    const auto places = profiler::place_labels(
        wishes, {.frame = to_rect({picture.corner.x, picture.top + px(3)},
                                  {picture.size.x, picture.bottom - picture.top - px(6)}),
                 .taken = labels.taken});
    size_t plates = 0;
    for (size_t i = 0; i < left.size() && plates < kMostPlates; ++i) {
        if (!places[i]) continue;
        draw_plate(labels, left[i], corner_of(*places[i]));
        ++plates;
    }
}

/// Names and sizes of the ribbons, large ribbons first: level inside the ribbon, else along it. A
/// change between A and B that finds no room inside gets a label beside, up to a few, where it
/// meets no other label.
void draw_ribbon_labels(ImDrawList* draw, const LayerPicture& picture, const LayerView& view,
                        const std::vector<RibbonStyle>& styles) {
    constexpr int64_t kSmallestPlate = 100;  // of the largest ribbon, as a fraction 1 / n
    const ScopedFont font(fonts().text, kSmallSize);
    Labels labels{draw, picture, {}};
    std::vector<Label> left;
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        const LayerRibbon& ribbon = view.ribbons[i];
        const Label label{&ribbon, styles[i].strength, text_width(ribbon.name),
                          text_width(ribbon.size_text)};
        if (draw_level(labels, label) || draw_along(labels, label)) continue;
        const auto& most = view.ribbons.front().bytes;
        const bool is_large = std::max(ribbon.bytes[0], ribbon.bytes[1]) * kSmallestPlate >=
                              std::max(most[0], most[1]);
        if (ribbon.presence != Presence::kSame && is_large) left.push_back(label);
    }
    // What changes most, whether it is saved or added.
    std::ranges::stable_sort(left, std::greater(), [](const Label& label) {
        return std::abs(label.ribbon->bytes[1] - label.ribbon->bytes[0]);
    });
    draw_plates(labels, left);
}

// ---- focus ----------------------------------------------------------------------------------

bool touches(const LayerRibbon& ribbon, size_t column, bool in_backward) {
    if (!in_backward) return ribbon.producer == column;
    return ribbon.consumer == column ||
           std::find(ribbon.also.begin(), ribbon.also.end(), column) != ribbon.also.end();
}

/// Whether the ribbon stays bright while something is in focus.
bool in_focus(const LayerRibbon& ribbon, size_t index, const LayerHighlights& highlights) {
    if (highlights.hovered.ribbon) return *highlights.hovered.ribbon == index;
    if (highlights.hovered.column) {
        return touches(ribbon, *highlights.hovered.column, highlights.hovered.in_backward);
    }
    if (highlights.picked_ribbon) return *highlights.picked_ribbon == index;
    if (highlights.picked_call.column != profiler::kOutside) {
        return touches(ribbon, highlights.picked_call.column, highlights.picked_call.in_backward);
    }
    return !highlights.category || *highlights.category == ribbon.category;
}

std::vector<RibbonStyle> styles_of(const LayerView& view, const LayerHighlights& highlights) {
    std::vector<RibbonStyle> styles(view.ribbons.size());
    for (size_t i = 0; i < styles.size(); ++i) {
        styles[i].strength = in_focus(view.ribbons[i], i, highlights) ? 1.0F : 0.32F;
        styles[i].is_hovered = highlights.hovered.ribbon == i;
        styles[i].is_picked = highlights.picked_ribbon == i;
        if (i < highlights.arrived.size()) styles[i].arrived = highlights.arrived[i];
    }
    return styles;
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
                        const LayerHighlights& highlights) {
    std::string forward = times_of(view.forward_text);
    if (!view.box_times_text.empty()) forward += "; " + view.box_times_text;
    draw_lane(draw, picture, picture.corner.y, false, "forward", forward);
    std::string backward = times_of(view.backward_text);
    if (!view.recomputed_text.empty()) backward += ", " + view.recomputed_text;
    draw_lane(draw, picture, picture.bottom + picture.box_height + px(2), true, "backward",
              backward);
    draw_outside(draw, picture, view);
    const std::vector<RibbonStyle> styles = styles_of(view, highlights);
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        draw_ribbon(draw, picture, view.ribbons[i], styles[i]);
    }
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        draw_threads(draw, picture, view, view.ribbons[i], styles[i].strength);
    }
    const float title_size = title_size_of(view, picture);
    for (size_t i = 0; i < view.columns.size(); ++i) {
        for (const bool in_backward : {false, true}) {
            const LayerHit& hovered = highlights.hovered;
            const bool is_picked = highlights.picked_call.column == i &&
                                   highlights.picked_call.in_backward == in_backward;
            draw_box(draw, picture, view.columns[i], in_backward,
                     {.title_size = title_size,
                      .is_hovered = hovered.column == i && hovered.in_backward == in_backward,
                      .is_picked = is_picked});
        }
    }
    draw_ribbon_labels(draw, picture, view, styles);
}

}  // namespace app
