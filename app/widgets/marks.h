#pragma once

#include "profiler/trace/trace.h"
#include "profiler/view/theme.h"

#include <imgui.h>

#include <string_view>

/// What plots are made of: marks, labels and patterned fills.
namespace app {

void draw_dashed_line(ImDrawList* draw, ImVec2 from, ImVec2 to, ImU32 color, float thickness);

/// Where memory ran out. `radius` is half of its width.
void draw_cross(ImDrawList* draw, ImVec2 center, float radius, ImU32 color);

/// A dot in the shape of its phase. `radius` is half of its width.
void draw_phase_shape(ImDrawList* draw, profiler::PhaseKind phase, ImVec2 center, float radius,
                      ImU32 color);

/// The edge of a bar whose true length nobody knows: teeth of the ground's colour, from one end of
/// the edge to the other, that reach `depth` into the bar.
void draw_torn_edge(ImDrawList* draw, ImVec2 from, ImVec2 to, ImVec2 depth, ImU32 ground);

/// Draws text on a plate that hides what lies behind it. `at` is the corner of the text, on the
/// screen. The plate is larger by `margin` on each side, in unscaled pixels.
void text_on_plate(ImDrawList* draw, ImVec2 at, std::string_view content, ImU32 ink, ImU32 ground,
                   ImVec2 margin = {3, 0});

/// Where a label stands on the screen, in pixels, so that the next one finds another place.
struct LabelArea {
    ImVec2 low;
    ImVec2 high;

    bool overlaps(const LabelArea& other) const {
        return low.x < other.high.x && other.low.x < high.x && low.y < other.high.y &&
               other.low.y < high.y;
    }
    /// Whether it covers a circle around `at`, or a part of it.
    bool contains(ImVec2 at, float radius) const {
        return at.x > low.x - radius && at.x < high.x + radius && at.y > low.y - radius &&
               at.y < high.y + radius;
    }
};

// ---- fills ----------------------------------------------------------------------------------

/// Fills a rectangle with the category's colour and its pattern, the second cue beside the colour.
/// `spacing` is the distance between the pattern's lines in pixels.
void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing);

/// The same for what is predicted: pale and with an outline.
void fill_predicted_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                             profiler::Category category, float alpha, float spacing);

/// Fills a rectangle with a recipe's colour, and with its pattern where recipes share a colour.
void fill_recipe(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, size_t index);

/// The marker of a recipe's points, in its colour.
void draw_recipe_marker(ImDrawList* draw, ImVec2 center, float radius, size_t index);

/// Fills a rectangle as what is predicted: pale, hatched and with an outline.
void fill_predicted(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 color);

}  // namespace app
