#pragma once

#include "profiler/tables/columns.h"
#include "profiler/view/theme.h"

#include <imgui.h>

/// Colours and sizes of the window: profiler/view/theme.h in the types of ImGui and ImPlot.
namespace app {

struct Palette {
    bool dark = true;
    ImU32 background = 0;  // behind panels: three levels of surface and few borders
    ImU32 panel = 0;
    ImU32 raised = 0;
    ImU32 popup = 0;
    ImU32 plot = 0;
    ImU32 border = 0;
    ImU32 text = 0;
    ImU32 dim = 0;
    ImU32 accent = 0;
    ImU32 good = 0;
    ImU32 bad = 0;
    ImU32 warn = 0;
};

/// Sets the style of ImGui and ImPlot; only between frames.
void apply_theme(bool dark, float scale);

/// The current colours.
const Palette& palette();
/// The same, as charts take them.
const profiler::Theme& current_theme();

ImU32 category_color(profiler::Category category);
ImU32 call_color(profiler::CallClass call_class);
ImU32 recipe_color(size_t index);
/// The hue of A (0) and of B (1), whatever their recipes.
ImU32 side_color(size_t side);
ImU32 tone_color(profiler::Tone tone);

/// `size` times the height of the font, so that lengths follow scale and font.
float em(float size);
/// `pixels` times the scale of the window.
float px(float pixels);

/// Black or white, whichever reads better on `fill`.
ImU32 ink_on(ImU32 fill);
ImU32 with_alpha(ImU32 color, float alpha);
ImVec4 to_vec4(ImU32 color);
ImU32 to_u32(profiler::Color color, float alpha = 1);

}  // namespace app
