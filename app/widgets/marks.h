#pragma once

#include "profiler/trace/trace.h"

#include <imgui.h>

/// Small marks in plots.
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

}  // namespace app
