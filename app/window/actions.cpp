#include "app/window/actions.h"

#include "app/widgets/icons.h"
#include "app/window/layout.h"
#include "app/window/ui.h"

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

void add_file_actions(std::vector<Action>& actions) {
    actions.push_back({.menu = Menu::kFile,
                       .title = "Open traces",
                       .icon = ICON_FOLDER_OPEN,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_O,
                       .run = [](Ui& ui) { ui.open_dialog.request_open = true; }});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Read all again",
                       .icon = ICON_ROTATE,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_R,
                       .run = reopen_all,
                       .enabled = has_documents});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Export comparison chart",
                       .icon = ICON_FILE_EXPORT,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_E,
                       .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kComparison); },
                       .enabled = has_comparison,
                       .separated = true});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Export timeline chart",
                       .icon = ICON_FILE_EXPORT,
                       .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kTimeline); },
                       .enabled = has_timeline});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Save picture of the window",
                       .icon = ICON_IMAGE,
                       .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E,
                       .run = [](Ui& ui) { ask_for_export(ui, ExportTarget::Kind::kWindow); }});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Close all traces",
                       .icon = ICON_XMARK,
                       .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_W,
                       .run = close_all,
                       .enabled = has_documents,
                       .separated = true});
    actions.push_back({.menu = Menu::kFile,
                       .title = "Quit",
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_Q,
                       .run = [](Ui& ui) { ui.quit = true; }});
}

void add_edit_actions(std::vector<Action>& actions) {
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Undo layout",
                       .icon = ICON_ROTATE_LEFT,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_Z,
                       .run = [](Ui& ui) { ui.layout_to_restore = ui.layout_history.undo(); },
                       .enabled = [](const Ui& ui) { return ui.layout_history.can_undo(); },
                       .global = false});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Find in the ledger",
                       .icon = ICON_MAGNIFIER,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_F,
                       .run =
                           [](Ui& ui) {
                               show_panel(ui, "ledger");
                               ui.panels.ledger.focus_filter = true;
                           },
                       .enabled = has_a,
                       .separated = true});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Swap A and B",
                       .icon = ICON_SWAP,
                       .shortcut = ImGuiKey_X,
                       .run = [](Ui& ui) { ui.workspace.swap_a_and_b(); },
                       .enabled = has_both,
                       .global = false});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Clear selection",
                       .shortcut = ImGuiKey_Escape,
                       .run =
                           [](Ui& ui) {
                               // What lies in front goes first.
                               if (close_popup() || std::exchange(ui.show_keys, false)) return;
                               ui.workspace.clear_selection();
                           },
                       .global = false});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Selection before",
                       .icon = ICON_ARROW_LEFT,
                       .shortcut = ImGuiMod_Alt | ImGuiKey_LeftArrow,
                       .run = [](Ui& ui) { ui.workspace.step_selection(-1); },
                       .enabled = [](const Ui& ui) { return ui.workspace.can_step_selection(-1); },
                       .global = false});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Selection after",
                       .icon = ICON_ARROW_RIGHT,
                       .shortcut = ImGuiMod_Alt | ImGuiKey_RightArrow,
                       .run = [](Ui& ui) { ui.workspace.step_selection(1); },
                       .enabled = [](const Ui& ui) { return ui.workspace.can_step_selection(1); },
                       .global = false});
    actions.push_back({.menu = Menu::kEdit,
                       .title = "Search commands",
                       .icon = ICON_TERMINAL,
                       .shortcut = ImGuiMod_Ctrl | ImGuiKey_K,
                       .run = [](Ui& ui) { ui.palette.request_open = true; },
                       .separated = true});
}

void add_view_actions(std::vector<Action>& actions) {
    actions.push_back({.menu = Menu::kView,
                       .title = "Show the whole capture",
                       .icon = ICON_EXPAND,
                       .shortcut = ImGuiKey_F,
                       .run = [](Ui& ui) { ui.workspace.fit_time(); },
                       .enabled = has_a,
                       .global = false});
    actions.push_back({.menu = Menu::kView,
                       .title = "Dark theme",
                       .icon = ICON_MOON,
                       .run = [](Ui& ui) { ui.settings.dark = true; },
                       .checked = [](const Ui& ui) { return ui.settings.dark; },
                       .separated = true});
    actions.push_back({.menu = Menu::kView,
                       .title = "Light theme",
                       .icon = ICON_SUN,
                       .run = [](Ui& ui) { ui.settings.dark = false; },
                       .checked = [](const Ui& ui) { return !ui.settings.dark; }});
    bool first = true;
    for (const PanelRow& row : kPanels) {
        actions.push_back({.menu = Menu::kView,
                           .title = row.title,
                           .icon = row.icon,
                           .shortcut = row.shortcut,
                           .run =
                               [&row](Ui& ui) {
                                   is_open(ui, row) ? set_open(ui, row, false)
                                                    : show_panel(ui, row.id);
                               },
                           .checked = [&row](const Ui& ui) { return is_open(ui, row); },
                           .separated = std::exchange(first, false)});
    }
    actions.push_back({.menu = Menu::kView,
                       .title = "Reset layout",
                       .run = [](Ui& ui) { ui.reset_layout = true; },
                       .separated = true});
}

void add_help_actions(std::vector<Action>& actions) {
    actions.push_back({.menu = Menu::kHelp,
                       .title = "Keys and mouse",
                       .icon = ICON_KEYBOARD,
                       .shortcut = ImGuiKey_F1,
                       .run = [](Ui& ui) { ui.show_keys = !ui.show_keys; }});
    actions.push_back({.menu = Menu::kHelp,
                       .title = "Frame metrics",
                       .run = [](Ui& ui) { ui.show_metrics = !ui.show_metrics; },
                       .checked = [](const Ui& ui) { return ui.show_metrics; }});
}

}  // namespace

std::vector<Action> make_actions() {
    std::vector<Action> actions;
    add_file_actions(actions);
    add_edit_actions(actions);
    add_view_actions(actions);
    add_help_actions(actions);
    return actions;
}

std::string shortcut_text(const Action& action) {
    if (action.shortcut == 0) return "";
    std::string text;
    if (action.shortcut & ImGuiMod_Ctrl) text += "Ctrl+";
    if (action.shortcut & ImGuiMod_Alt) text += "Alt+";
    if (action.shortcut & ImGuiMod_Shift) text += "Shift+";
    return text + ImGui::GetKeyName(static_cast<ImGuiKey>(action.shortcut & ~ImGuiMod_Mask_));
}

bool is_enabled(const Ui& ui, const Action& action) {
    return !action.enabled || action.enabled(ui);
}

void run_shortcuts(Ui& ui) {
    for (const Action& action : ui.actions) {
        if (action.shortcut == 0 || !is_enabled(ui, action)) continue;
        if (!action.global && (ImGui::GetIO().WantTextInput || ImGui::IsAnyItemActive())) continue;
        if (ImGui::Shortcut(action.shortcut, ImGuiInputFlags_RouteGlobal)) action.run(ui);
    }
}

}  // namespace app
