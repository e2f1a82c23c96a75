#pragma once

#include <functional>
#include <string>
#include <vector>

/// One field for everything that has a name: commands with their shortcuts, and what the caller
/// finds. Typing narrows the list.
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
    std::string detail;  // dim, after the title: "×144"
    std::string value;   // right-aligned: "1.25 GiB"
    std::string kind;    // dim, at the right end: "tensor"
    std::string whole;   // in the tooltip, if the title is shortened
    std::string also;    // other words for it, with commas: "leak, growth"; they find it too
};

/// Entries under a heading.
struct PaletteGroup {
    /// A score of entries that match by their letters in order alone; words score more.
    static constexpr int kLettersOnly = 1;

    std::string title;
    std::vector<PaletteEntry> entries;  // best first
    int best_score = 0;
    std::string note;  // dim, below the entries: "132 more"
};

struct PaletteContent {
    std::vector<PaletteGroup> groups;
    bool is_complete = true;  // false: more may be found for this text
};

struct PaletteState {
    bool request_open = false;  // set this to open the palette
    bool is_open = false;
    std::string query;
    size_t picked = 0;
    bool enter_pressed = false;  // before everything was found
};

/// Draws the palette while it is open. Runs the chosen entry after the palette has closed.
void draw_command_palette(PaletteState& state,
                          const std::function<PaletteContent(const std::string& query)>& content);

/// The entries whose titles or other words match, best first. All of them for an empty query.
PaletteGroup matching(std::string title, std::vector<PaletteEntry> entries,
                      const std::string& query);

/// How well `query` matches `title`: negative unless its letters occur in `title` in the same
/// order, in any case; higher if they are adjacent or start words.
int match_score(std::string_view query, std::string_view title);

}  // namespace app
