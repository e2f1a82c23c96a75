#include "app/panels/layers/layer_labels.h"

#include "app/widgets/fonts.h"
#include "app/widgets/label_area.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace app {
namespace {

using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::Presence;

struct Label {
    const LayerRibbon* ribbon = nullptr;
    float strength = 1;
    float name_width = 0;
    float size_width = 0;
};

struct Labels {
    ImDrawList* draw = nullptr;
    const LayerPicture& picture;
    std::vector<LabelArea> taken;
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

// ---- inside a ribbon ------------------------------------------------------------------------

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
    labels.taken.push_back({{middle - width / 2, y}, {middle + width / 2, y + height}});
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
        {{std::min(course.start.x, end.x) - half, std::min(course.start.y, end.y)},
         {std::max(course.start.x, end.x) + half, std::max(course.start.y, end.y)}});
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

// ---- over a ribbon --------------------------------------------------------------------------

/// Short lines along the ribbon, out of its plate: which of neighbours the plate names.
void draw_ties(const Labels& labels, const LayerRibbon& ribbon, const LabelArea& plate,
               ImU32 color) {
    const LayerPicture& picture = labels.picture;
    const auto at = [&](float y) {
        y = std::clamp(y, picture.top, picture.bottom);
        return ImVec2{span_at(picture, ribbon, y).middle(), y};
    };
    for (const auto& [from, to] : {std::pair(plate.low.y, plate.low.y - px(9)),
                                   std::pair(plate.high.y, plate.high.y + px(9))}) {
        labels.draw->AddLine(at(from), at(to), color, px(2));
        labels.draw->AddCircleFilled(at(to), px(3), color);
    }
}

/// Name above size on a plate of its own, at the first height where it meets no other label.
bool draw_plate(Labels& labels, const Label& label) {
    const LayerPicture& picture = labels.picture;
    const LayerRibbon& ribbon = *label.ribbon;
    const float line = ImGui::GetTextLineHeight();
    const ImVec2 size{std::max(label.name_width, label.size_width) + px(12), 2 * line + px(6)};
    const float height = picture.bottom - picture.top;
    for (const float share : {0.5F, 0.34F, 0.66F, 0.2F, 0.8F}) {
        const float y = picture.top + height * share - size.y / 2;
        const float middle = span_at(picture, ribbon, y + size.y / 2).middle();
        const float x = std::clamp(middle - size.x / 2, picture.corner.x,
                                   picture.corner.x + picture.size.x - size.x);
        const LabelArea area{{std::round(x), std::round(y)}, {x + size.x, y + size.y}};
        if (area.low.y < picture.top + px(3) || area.high.y > picture.bottom - px(3)) continue;
        if (std::any_of(labels.taken.begin(), labels.taken.end(),
                        [&](const LabelArea& other) { return area.overlaps(other); })) {
            continue;
        }
        const float alpha = std::max(label.strength, 0.7F);
        const ImU32 ink = ribbon.presence == Presence::kAdded ? palette().bad : palette().good;
        draw_ties(labels, ribbon, area, with_alpha(ink, alpha));
        labels.draw->AddRectFilled(area.low, area.high, with_alpha(palette().popup, 0.94F), px(4));
        labels.draw->AddRect(area.low, area.high, with_alpha(ink, 0.55F * alpha), px(4), px(1));
        const auto add = [&](float width, float top, ImU32 color, const std::string& content) {
            labels.draw->AddText({std::round((area.low.x + area.high.x - width) / 2), top},
                                 with_alpha(color, alpha), content.c_str());
        };
        add(label.name_width, area.low.y + px(2), palette().text, ribbon.name);
        add(label.size_width, area.low.y + px(3) + line, ink, ribbon.size_text);
        labels.taken.push_back(area);
        return true;
    }
    return false;
}

}  // namespace

void draw_ribbon_labels(ImDrawList* draw, const LayerPicture& picture, const LayerView& view,
                        const std::vector<RibbonLook>& looks) {
    constexpr size_t kMostPlates = 8;
    constexpr int64_t kSmallestPlate = 100;  // of the largest ribbon, as a fraction 1 / n
    const ScopedFont font(fonts().text, kSmallSize);
    Labels labels{draw, picture, {}};
    std::vector<Label> left;
    for (size_t i = 0; i < view.ribbons.size(); ++i) {
        const LayerRibbon& ribbon = view.ribbons[i];
        const Label label{&ribbon, looks[i].strength, text_width(ribbon.name),
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
    size_t plates = 0;
    for (const Label& label : left) {
        if (plates == kMostPlates) break;
        plates += draw_plate(labels, label);
    }
}

}  // namespace app
