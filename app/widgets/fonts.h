#pragma once

struct ImFont;

/// The window's fonts, embedded in the program: Roboto with icons merged into it, because its
/// digits are equally wide (Inter's default digits are not), and Inconsolata for addresses and
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

/// Loads the fonts into the atlas of the current ImGui context.
Fonts load_fonts();

/// The fonts of the current context.
const Fonts& fonts();

}  // namespace app
