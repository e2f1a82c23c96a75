#pragma once

#include <functional>
#include <string>
#include <vector>

/// All commands by name, with their shortcuts. Typing narrows the list.
///
/// The imgui-command-palette of imgui-bundle does less: it shows neither icons nor shortcuts,
/// Escape does not close it, the list does not scroll to the selected entry, and Enter runs a
/// command even when the typed text matches none.
namespace app {

struct PaletteEntry {
    std::string title;
    const char* icon = "";
    std::string shortcut;
    std::function<void()> run;
};

struct PaletteState {
    bool request_open = false;  // set this to open the palette
    std::string query;
    size_t picked = 0;
};

/// Draws the palette while it is open. Runs the chosen entry after the palette has closed.
void draw_command_palette(PaletteState& state,
                          const std::function<std::vector<PaletteEntry>()>& entries);

/// How well `query` matches `title`: negative unless its letters occur in `title` in the same
/// order, in any case; higher if they are adjacent or start words.
int match_score(std::string_view query, std::string_view title);

}  // namespace app
