#pragma once

#include "profiler/view/theme.h"

#include <imgui.h>

namespace app {

/// A fill with the category's pattern over it, the second cue beside its colour. `spacing` lies between
/// the pattern's lines, in pixels.
void fill_category(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                   profiler::Category category, float alpha, float spacing);

}  // namespace app
