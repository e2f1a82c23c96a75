#pragma once

#include <imgui.h>

#include <string_view>

namespace app {

/// Draws text on a plate that hides what lies behind it. `at` is the corner of the text, on the
/// screen. The plate is larger by `margin` on each side, in unscaled pixels.
void text_on_plate(ImDrawList* draw, ImVec2 at, std::string_view content, ImU32 ink, ImU32 ground,
                   ImVec2 margin = {3, 0});

}  // namespace app
