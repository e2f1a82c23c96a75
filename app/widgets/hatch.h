#pragma once

#include "profiler/view/theme.h"

#include <imgui.h>

namespace app {

/// Fills a rectangle with the category's colour and its pattern, the second cue beside the colour.
/// `spacing` is the distance between the pattern's lines in pixels.
void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing);

/// Fills a rectangle as what is predicted: pale, hatched and with an outline.
void fill_predicted(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right, ImU32 color);

}  // namespace app
