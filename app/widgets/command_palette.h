#pragma once

#include <functional>
#include <string>
#include <vector>

/// A list that narrows while one types: every command by name, with its shortcut beside it.
namespace app {

struct PaletteEntry {
    std::string title;
    const char* icon = "";
    std::string shortcut;
    std::function<void()> run;
};

struct PaletteState {
    bool request_open = false;  // set to open it
    std::string query;
    size_t picked = 0;
};

/// Draws it while it is open; runs the chosen entry after it has closed.
void draw_command_palette(PaletteState& state,
                          const std::function<std::vector<PaletteEntry>()>& entries);

/// Whether the letters of `query` occur in `title` in this order, in any case; higher is a better
/// match (letters together, at the start of words), negative is none.
int match_score(std::string_view query, std::string_view title);

}  // namespace app
