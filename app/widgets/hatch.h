#pragma once

#include "profiler/view/theme.h"

#include <imgui.h>

namespace app {

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
