#pragma once

#include "profiler/view/theme.h"

#include <imgui.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// Text and small marks as every panel draws them: labels dim, values bold, numbers to the right.
namespace app {

void text(std::string_view content);
void dim_text(std::string_view content);
void bold_text(std::string_view content);
void colored_text(ImU32 color, std::string_view content);
/// Ends at the right edge of the cell or of the space that is left.
void right_text(std::string_view content);
/// Dim text that breaks at the right edge.
void note_text(std::string_view content);

float text_width(std::string_view content);
/// As much of it as fits into `width` in the font in use; the middle gives way.
std::string fit_to(std::string_view content, float width);
/// The same of a module path: its start gives way.
std::string fit_path_to(std::string_view path, float width);

/// A small filled square before a label.
void swatch(ImU32 color);
/// The same in a category's colour and pattern.
void category_swatch(profiler::Category category, bool faded = false);
/// A swatch with a letter on it: A or B.
void letter_badge(const char* letter, ImU32 color);
/// The same at a place of one's choice, in the font in use; a square of letter_badge_size().
void draw_letter_badge(ImDrawList* draw, ImVec2 corner, const char* letter, ImU32 color);
float letter_badge_size();
/// Labels dim, values beside them, in a tooltip; what has no value is left out.
void readout_table(std::span<const std::pair<std::string, std::string>> rows);
/// "Peak A  24.5 GiB"
void labelled_value(std::string_view label, std::string_view value, ImU32 color = 0);

/// A dim (?) that explains a derived number when hovered.
void help_marker(std::string_view explanation);

/// Swatches and names side by side, on further lines where `width` is full; the one that was
/// clicked. While one is `picked` out the others are pale.
std::optional<profiler::Category> category_legend(std::span<const profiler::Category> categories,
                                                  std::optional<profiler::Category> picked,
                                                  float width);

/// A button that is lit while it is on; true when clicked.
bool toggle_button(const char* label, bool on);

/// In the middle of the panel: what is missing here and what to do next.
void empty_state(const char* icon, std::string_view title, std::string_view advice);

/// A thin moving bar and a line of text: something is being computed.
void working_line(std::string_view what);

}  // namespace app
