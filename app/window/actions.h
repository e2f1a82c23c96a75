#pragma once

#include <imgui.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The commands of the window. An action is one row: its place in the menus, its shortcut, its
/// entry in the command palette, and what it does.
namespace app {

struct Ui;

enum class Menu { kFile, kEdit, kView, kHelp };

struct Action {
    Menu menu = Menu::kFile;
    std::string title;      // "Open traces"
    const char* also = "";  // other words for it, for the search: "oom, leak"
    const char* icon = "";
    ImGuiKeyChord shortcut = 0;  // as long as the user chooses no other
    ImGuiKeyChord second_shortcut = 0;
    std::function<void(Ui&)> run;
    std::function<bool(const Ui&)> enabled;  // empty: always
    std::function<bool(const Ui&)> checked;  // empty: not a switch
    bool separated = false;                  // the menu draws a line above it
    bool global = true;                      // false: the shortcut does nothing in a text field
    std::array<ImGuiKeyChord, 2> default_keys{};  // make_actions fills these
    std::array<ImGuiKeyChord, 2> keys{};          // 0: none
};

std::vector<Action> make_actions();

/// Runs the actions whose shortcut was pressed.
void run_shortcuts(Ui& ui);

/// The first key of an action: "Ctrl+Shift+E"; empty for an action without one.
std::string shortcut_text(const Action& action);

/// The key of the action with this title, as the user has set it.
std::string shortcut_of(const Ui& ui, std::string_view title);

bool is_enabled(const Ui& ui, const Action& action);

}  // namespace app
