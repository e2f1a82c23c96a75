#include "app/window/actions.h"

#include "app/widgets/icons.h"
#include "app/window/keyboard.h"
#include "app/window/layout.h"
#include "app/window/ui.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace app {
namespace {

bool has_a(const Ui& ui) { return ui.workspace.selection().a != nullptr; }
bool has_both(const Ui& ui) { return has_a(ui) && ui.workspace.selection().b != nullptr; }
bool has_documents(const Ui& ui) { return !ui.workspace.documents().empty(); }
bool has_comparison(const Ui& ui) { return ui.workspace.slots().compare.view() != nullptr; }
bool has_timeline(const Ui& ui) { return ui.workspace.slots().timeline.view() != nullptr; }

void close_all(Ui& ui) {
    while (has_documents(ui)) ui.workspace.close(ui.workspace.documents().back());
}

void reopen_all(Ui& ui) {
    std::vector<std::filesystem::path> files;
    for (const DocumentPtr& document : ui.workspace.documents()) {
        std::error_code ignored;  // a prediction has no file
        if (std::filesystem::exists(document->file, ignored)) files.push_back(document->file);
    }
    ui.workspace.open(files);
}

void add(std::vector<Action>& actions, Menu menu, std::vector<Action> more) {
    for (Action& action : more) {
        action.menu = menu;
        actions.push_back(std::move(action));
    }
}

void add_file_actions(std::vector<Action>& actions) {
    add(actions, Menu::kFile,
        {{.title = "Open traces",
          .icon = ICON_FOLDER_OPEN,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_O,
          .run = [](Ui& ui) { ui.open_dialog.request_open = true; }},
         {.title = "Run a program",
          .also = "record, capture, python, script",
          .icon = ICON_PLAY,
          .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_R,
          .run = [](Ui& ui) { ui.run_dialog.request_open = true; }},
         {.title = "Read all again",
          .icon = ICON_ROTATE,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_R,
          .run = reopen_all,
          .enabled = has_documents},
         {.title = "Reload changed files",
          .run =
              [](Ui& ui) {
                  bool& reloads = ui.settings.reload_changed_files;
                  reloads = !reloads;
              },
          .checked = [](const Ui& ui) { return ui.settings.reload_changed_files; }},
         {.title = "Export comparison chart",
          .icon = ICON_FILE_EXPORT,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_E,
          .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kComparison); },
          .enabled = has_comparison,
          .separated = true},
         {.title = "Export timeline chart",
          .icon = ICON_FILE_EXPORT,
          .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kTimeline); },
          .enabled = has_timeline},
         {.title = "Save picture of the window",
          .icon = ICON_IMAGE,
          .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E,
          .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kWindow); }},
         {.title = "Close all traces",
          .icon = ICON_XMARK,
          .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_W,
          .run = close_all,
          .enabled = has_documents,
          .separated = true},
         {.title = "Quit", .shortcut = ImGuiMod_Ctrl | ImGuiKey_Q, .run = [](Ui& ui) {
              ui.quit = true;
          }}});
}

void add_edit_actions(std::vector<Action>& actions) {
    add(actions, Menu::kEdit,
        {{.title = "Undo layout",
          .icon = ICON_ROTATE_LEFT,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_Z,
          .run = [](Ui& ui) { ui.layout_to_restore = ui.layout_history.undo(); },
          .enabled = [](const Ui& ui) { return ui.layout_history.can_undo(); },
          .global = false},
         {.title = "Find in the ledger",
          .icon = ICON_MAGNIFIER,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_F,
          .run =
              [](Ui& ui) {
                  const PanelWindow ledger = meant_window(ui, "ledger");
                  show_panel(ui, id_of(ledger));
                  states_of(ui, ledger.number).ledger.focus_filter = true;
              },
          .enabled = has_a,
          .separated = true},
         {.title = "Swap A and B",
          .icon = ICON_SWAP,
          .shortcut = ImGuiKey_X,
          .run = [](Ui& ui) { ui.workspace.swap_a_and_b(); },
          .enabled = has_both,
          .global = false},
         {.title = "Clear selection",
          .shortcut = ImGuiKey_Escape,
          .run =
              [](Ui& ui) {
                  // What lies in front goes first.
                  if (close_popup() || std::exchange(ui.keyboard.is_open, false)) return;
                  ui.found = {};
                  ui.workspace.clear_selection();
              },
          .global = false},
         {.title = "Previous selection",
          .icon = ICON_ARROW_LEFT,
          .shortcut = ImGuiMod_Alt | ImGuiKey_LeftArrow,
          .run = [](Ui& ui) { ui.workspace.step_selection(-1); },
          .enabled = [](const Ui& ui) { return ui.workspace.can_step_selection(-1); },
          .global = false},
         {.title = "Next selection",
          .icon = ICON_ARROW_RIGHT,
          .shortcut = ImGuiMod_Alt | ImGuiKey_RightArrow,
          .run = [](Ui& ui) { ui.workspace.step_selection(1); },
          .enabled = [](const Ui& ui) { return ui.workspace.can_step_selection(1); },
          .global = false},
         {.title = "Search everything",
          .icon = ICON_MAGNIFIER,
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_K,
          .second_shortcut = ImGuiKey_Slash,
          .run = [](Ui& ui) { ui.palette.request_open = true; },
          .separated = true},
         {.title = "Find next",
          .icon = ICON_ARROW_DOWN,
          .shortcut = ImGuiKey_F3,
          .run = [](Ui& ui) { step_found(ui, 1); },
          .enabled = [](const Ui& ui) { return ui.found.index != nullptr; }},
         {.title = "Find previous",
          .icon = ICON_ARROW_UP,
          .shortcut = ImGuiMod_Shift | ImGuiKey_F3,
          .run = [](Ui& ui) { step_found(ui, -1); },
          .enabled = [](const Ui& ui) { return ui.found.index != nullptr; }}});
}

void add_text_size_actions(std::vector<Action>& actions) {
    add(actions, Menu::kView,
        {{.title = "Larger text",
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_Equal,  // the key with the plus
          .second_shortcut = ImGuiMod_Ctrl | ImGuiKey_KeypadAdd,
          .run = [](Ui& ui) { ui.settings.step_text_scale(1); },
          .separated = true},
         {.title = "Smaller text",
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_Minus,
          .second_shortcut = ImGuiMod_Ctrl | ImGuiKey_KeypadSubtract,
          .run = [](Ui& ui) { ui.settings.step_text_scale(-1); }},
         {.title = "Normal text size",
          .shortcut = ImGuiMod_Ctrl | ImGuiKey_0,
          .second_shortcut = ImGuiMod_Ctrl | ImGuiKey_Keypad0,
          .run = [](Ui& ui) { ui.settings.text_scale = 1; }}});
}

void add_layout_actions(std::vector<Action>& actions) {
    constexpr std::array kKeys{ImGuiKey_1, ImGuiKey_2, ImGuiKey_3};
    for (size_t i = 0; i < kLayoutNames.size(); ++i) {
        const auto layout = static_cast<Layout>(i);
        actions.push_back({.menu = Menu::kView,
                           .title = std::string("Layout: ") + kLayoutNames[i],
                           .icon = ICON_EXPAND,
                           .shortcut = ImGuiMod_Ctrl | kKeys[i],
                           .run = [layout](Ui& ui) { switch_layout(ui, layout); },
                           .checked = [layout](const Ui& ui) { return layout_of(ui) == layout; },
                           .separated = i == 0});
    }
}

void add_panel_actions(std::vector<Action>& actions) {
    bool first = true;
    for (const PanelRow& row : kPanels) {
        actions.push_back({.menu = Menu::kView,
                           .title = row.title,
                           .also = row.also,
                           .icon = row.icon,
                           .shortcut = row.shortcut,
                           .run =
                               [&row](Ui& ui) {
                                   is_open(ui, {&row}) ? set_open(ui, {&row}, false)
                                                       : show_panel(ui, row.id);
                               },
                           .checked = [&row](const Ui& ui) { return is_open(ui, {&row}); },
                           .separated = std::exchange(first, false)});
    }
}

/// Further windows of panels.
void add_window_actions(std::vector<Action>& actions) {
    bool first = true;
    for (const PanelRow& row : kPanels) {
        if (!row.can_repeat) continue;
        actions.push_back({.menu = Menu::kView,
                           .title = fmt::format("New {} window", row.title),
                           .icon = ICON_PLUS,
                           .run = [&row](Ui& ui) { open_another(ui, meant_window(ui, row.id)); },
                           .enabled = [&row](const Ui& ui) { return can_open_another(ui, row); },
                           .separated = std::exchange(first, false)});
    }
}

void add_view_actions(std::vector<Action>& actions) {
    add(actions, Menu::kView,
        {{.title = "Show the whole capture",
          .icon = ICON_EXPAND,
          .shortcut = ImGuiKey_F,
          .run = [](Ui& ui) { ui.workspace.fit_time(); },
          .enabled = has_a,
          .global = false},
         {.title = "Dark theme",
          .icon = ICON_MOON,
          .run = [](Ui& ui) { ui.settings.dark = true; },
          .checked = [](const Ui& ui) { return ui.settings.dark; },
          .separated = true},
         {.title = "Light theme",
          .icon = ICON_SUN,
          .run = [](Ui& ui) { ui.settings.dark = false; },
          .checked = [](const Ui& ui) { return !ui.settings.dark; }}});
    add_text_size_actions(actions);
    add_layout_actions(actions);
    add_panel_actions(actions);
    add_window_actions(actions);
    add(actions, Menu::kView,
        {{.title = "Reset layout",
          .run = [](Ui& ui) { ui.reset_layout = true; },
          .separated = true}});
}

void add_help_actions(std::vector<Action>& actions) {
    add(actions, Menu::kHelp,
        {{.title = "Keyboard and mouse",
          .icon = ICON_KEYBOARD,
          .shortcut = ImGuiKey_F1,
          .second_shortcut = ImGuiMod_Shift | ImGuiKey_Slash,
          .run = [](Ui& ui) { ui.keyboard.is_open = !ui.keyboard.is_open; }},
         {.title = "See what Tempo saves: example traces",
          .icon = ICON_LIGHTBULB,
          .run = [](Ui& ui) { ui.workspace.open_examples(); }},
         {.title = "Frame metrics",
          .run = [](Ui& ui) { ui.show_metrics = !ui.show_metrics; },
          .checked = [](const Ui& ui) { return ui.show_metrics; }}});
}

/// Whether a text field takes this key as a letter.
bool is_typed(ImGuiKeyChord chord) {
    const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
    const bool is_function_key = key >= ImGuiKey_F1 && key <= ImGuiKey_F24;
    return !is_function_key && (chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) == 0;
}

}  // namespace

std::vector<Action> make_actions() {
    std::vector<Action> actions;
    add_file_actions(actions);
    add_edit_actions(actions);
    add_view_actions(actions);
    add_help_actions(actions);
    for (Action& action : actions) {
        action.default_keys = action.keys = {action.shortcut, action.second_shortcut};
    }
    return actions;
}

std::string shortcut_text(const Action& action) {
    return chord_text(action.keys[0] != 0 ? action.keys[0] : action.keys[1]);
}

std::string shortcut_of(const Ui& ui, std::string_view title) {
    for (const Action& action : ui.actions) {
        if (action.title == title) return shortcut_text(action);
    }
    return "";
}

bool is_enabled(const Ui& ui, const Action& action) {
    return !action.enabled || action.enabled(ui);
}

void run_shortcuts(Ui& ui) {
    if (ui.keyboard.waiting) return;  // the next key is for the page of keys
    const bool types = ImGui::GetIO().WantTextInput;
    for (const Action& action : ui.actions) {
        if (!is_enabled(ui, action)) continue;
        if (!action.global && (types || ImGui::IsAnyItemActive())) continue;
        for (const ImGuiKeyChord chord : action.keys) {
            if (chord == 0 || (types && is_typed(chord))) continue;
            if (ImGui::Shortcut(chord, ImGuiInputFlags_RouteGlobal)) action.run(ui);
        }
    }
}

}  // namespace app
