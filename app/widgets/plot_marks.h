#pragma once

#include "profiler/view/place_labels.h"
#include "profiler/view/theme.h"

#include <imgui.h>

#include <cmath>
#include <string_view>

/// What plots are made of: marks, labels and patterned fills.
namespace app {

void draw_dashed_line(ImDrawList* draw, ImVec2 from, ImVec2 to, ImU32 color, float thickness);

/// Draws text on a plate that hides what lies behind it. `at` is the corner of the text, on the
/// screen. The plate is larger by `margin` on each side, in unscaled pixels.
void text_on_plate(ImDrawList* draw, ImVec2 at, std::string_view content, ImU32 ink, ImU32 ground,
                   ImVec2 margin = {3, 0});

// Pixels of the screen in the types of profiler/view/place_labels.h.
inline profiler::Point to_point(ImVec2 at) { return {at.x, at.y}; }
inline profiler::LabelSize to_size(ImVec2 size) { return {size.x, size.y}; }
inline profiler::Rect to_rect(ImVec2 corner, ImVec2 size) {
    return {corner.x, corner.y, size.x, size.y};
}
/// The upper left corner, at a whole pixel.
inline ImVec2 corner_of(const profiler::Rect& rect) {
    return {std::round(static_cast<float>(rect.x)), std::round(static_cast<float>(rect.y))};
}

/// A rectangle on the screen, in pixels.
struct ScreenBox {
    ImVec2 upper;
    ImVec2 lower;

    float width() const { return lower.x - upper.x; }
    float height() const { return lower.y - upper.y; }
    bool empty() const { return lower.x <= upper.x || lower.y <= upper.y; }
    bool contains(ImVec2 point) const {
        return point.x >= upper.x && point.x < lower.x && point.y >= upper.y && point.y < lower.y;
    }
};

// ---- fills ----------------------------------------------------------------------------------

/// Fills a rectangle with the category's colour and its pattern, the second cue beside the colour.
/// `spacing` is the distance between the pattern's lines in pixels.
void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing);

/// The pattern alone, over a fill in the category's colour.
void hatch_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                    profiler::Category category, float alpha, float spacing);

/// Fills a rectangle with a recipe's colour, and with its pattern where recipes share a colour.
void fill_recipe(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, size_t index);

}  // namespace app
