#pragma once

struct ImFont;

/// The window's fonts, embedded in the program. Roboto because its digits are equally wide
/// (Inter's default ones are not), icons merged into it; Inconsolata for addresses and names of
/// code.
namespace app {

inline constexpr float kTextSize = 15.0F;  // at scale 1
inline constexpr float kSmallSize = 13.0F;
inline constexpr float kTitleSize = 19.0F;

struct Fonts {
    ImFont* text = nullptr;
    ImFont* bold = nullptr;
    ImFont* mono = nullptr;
};

/// Adds them to the current ImGui context, whose atlas keeps them.
Fonts load_fonts();

/// Those of the current context, as load_fonts returned them. Panels read this.
const Fonts& fonts();

}  // namespace app
