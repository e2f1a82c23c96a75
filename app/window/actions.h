#pragma once

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

/// Everything that can be done without pointing at something: menu, shortcut and command palette
/// of one action are one row.
namespace app {

struct Ui;

enum class Menu { kFile, kEdit, kView, kHelp };

struct Action {
    Menu menu = Menu::kFile;
    std::string title;  // "Open traces"
    const char* icon = "";
    ImGuiKeyChord shortcut = 0;
    std::function<void(Ui&)> run;
    std::function<bool(const Ui&)> enabled;  // empty: always
    std::function<bool(const Ui&)> checked;  // empty: not a switch
    bool separated = false;                  // a line above it in the menu
    bool global = true;                      // false: only while no text is being edited
};

std::vector<Action> make_actions();

/// Runs those whose shortcut was pressed.
void run_shortcuts(Ui& ui);

/// "Ctrl+Shift+E"; empty for an action without a shortcut.
std::string shortcut_text(const Action& action);

bool is_enabled(const Ui& ui, const Action& action);

}  // namespace app
