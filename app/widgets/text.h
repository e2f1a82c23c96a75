#pragma once

#include "app/widgets/scoped.h"
#include "profiler/view/theme.h"

#include <imgui.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// Text and small marks of all panels: labels are dim, values bold, numbers right-aligned.
namespace app {

void text(std::string_view content);
void dim_text(std::string_view content);
void bold_text(std::string_view content);
void colored_text(ImU32 color, std::string_view content);
/// Right-aligned in the cell or in the remaining space.
void right_text(std::string_view content);
/// Text that wraps `width` from the left edge of the window, or at its right edge if that is 0.
void wrapped_text(std::string_view content, float width = 0);
void wrapped_bold_text(std::string_view content, float width = 0);
/// Dim text that wraps at the right edge.
void note_text(std::string_view content);

float text_width(std::string_view content);
/// Shortened in the middle to fit `width` in the current font.
std::string fit_to(std::string_view content, float width);
/// A module path, shortened at its start to fit.
std::string fit_path_to(std::string_view path, float width);

/// A small filled square before a label.
void swatch(ImU32 color);
struct NamedColor {
    ImU32 color = 0;
    std::string_view name;
};
/// Swatches with their names, side by side. The next item is in the next line.
void color_legend(std::span<const NamedColor> colors);
float color_legend_width(std::span<const NamedColor> colors);
/// A swatch in the colour and pattern of a recipe.
void recipe_swatch(size_t index);
/// A swatch in the colour and pattern of a category.
void category_swatch(profiler::Category category, bool faded = false);
/// A swatch with a letter on it: A or B.
void letter_badge(const char* letter, ImU32 color);
/// Draws the badge at `corner` in the current font; it is a square of letter_badge_size().
void draw_letter_badge(ImDrawList* draw, ImVec2 corner, const char* letter, ImU32 color);
float letter_badge_size();
/// A small button with a letter, filled when it is on.
bool letter_button(const char* letter, bool on, ImU32 color);
/// Labels and values for a tooltip. Rows without a value are left out.
void readout_table(std::span<const std::pair<std::string, std::string>> rows);
/// "Peak A  24.5 GiB"
void labelled_value(std::string_view label, std::string_view value, ImU32 color = 0);

/// A warning sign in this colour, and dim text that wraps.
void warning_note(ImU32 color, std::string_view note);

/// Calls `draw` with the index of each row in sight; all rows have one height.
template <typename Draw>
void draw_visible_rows(size_t count, const Draw& draw) {
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(count));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            draw(static_cast<size_t>(i));
        }
    }
}

/// A dim (?) that explains a derived number when hovered.
void help_marker(std::string_view explanation);

/// Swatches and names side by side, on several lines if `width` is too small. Returns the category
/// that was clicked. If one is `picked`, the others are pale.
std::optional<profiler::Category> category_legend(std::span<const profiler::Category> categories,
                                                  std::optional<profiler::Category> picked,
                                                  float width);

/// A button that is lit while it is on. Returns true when it was clicked.
bool toggle_button(const char* label, bool on);
/// One of several values, as a button.
template <typename Value>
struct Choice {
    const char* label = "";
    const char* tooltip = "";
    Value value{};
    bool is_possible = true;
};
/// Buttons side by side, the one of `value` lit. Returns whether another one was clicked, which
/// sets `value`.
template <typename Value>
bool choose_one(Value& value, std::initializer_list<Choice<Value>> choices, float gap) {
    const Value before = value;
    for (const Choice<Value>& one : choices) {
        if (&one != choices.begin()) ImGui::SameLine(0, gap);
        const ScopedDisabled disabled(!one.is_possible);
        if (toggle_button(one.label, value == one.value)) value = one.value;
        ImGui::SetItemTooltip("%s", one.tooltip);
    }
    return value != before;
}

/// A part of a panel that can be shown.
struct PanelPart {
    const char* label = "";
    const char* tooltip = "";
    bool has_room = true;  // for it, as the panel is now
};
/// A button that switches the part. If it is `on` and has no room, only the border is lit.
void switch_button(const PanelPart& part, bool& on);

/// ImGui's check box with an edge, so that an empty one does not look like a gap. Returns true when
/// it was clicked.
bool check_box(const char* label, bool* value);
/// The same for a choice of one of several.
bool radio_button(const char* label, bool is_chosen);

/// Fills an empty panel: what is missing and what to do next.
void empty_state(const char* icon, std::string_view title, std::string_view advice);

/// A moving bar and a line of text while something is being computed.
void working_line(std::string_view what);

}  // namespace app
