#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/keyboard.h"
#include "app/window/ui.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// The page that lists the keys: the second half of keyboard.h.
namespace app {
namespace {

struct MouseLine {
    const char* keys;
    const char* what;
};
constexpr std::array kMouseLines{
    MouseLine{"Wheel, W and S", "zoom in time"},
    MouseLine{"Drag, A and D", "move in time"},
    MouseLine{"Right drag", "zoom to a range"},
    MouseLine{"Shift + drag", "select a range; Z zooms to it, Esc clears it"},
    MouseLine{"Click in the timeline", "set the moment, which can be dragged; Home shows the peak"},
    MouseLine{"Double click", "show the whole capture"},
    MouseLine{"Click a category", "highlight it in every panel"},
    MouseLine{"Click a recipe", "show it as B"},
};

/// The key that was pressed in this frame, with its modifiers; 0: none.
ImGuiKeyChord pressed_chord() {
    for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key) {
        const bool is_modifier = key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper;
        if (is_modifier || !ImGui::IsKeyPressed(static_cast<ImGuiKey>(key), false)) continue;
        const int modifiers =
            ImGui::GetIO().KeyMods & (ImGuiMod_Ctrl | ImGuiMod_Alt | ImGuiMod_Shift);
        return modifiers | key;
    }
    return 0;
}

/// Gives the waiting slot the key that was pressed. A key of another action is taken only when it
/// is pressed twice.
void take_key(Ui& ui) {
    KeyboardState& state = ui.keyboard;
    const ImGuiKeyChord chord = pressed_chord();
    if (!state.waiting || chord == 0) return;
    const auto finish = [&] {
        state.waiting.reset();
        state.conflicting = 0;
    };
    state.sentence.clear();
    if (chord == ImGuiKey_Escape) return finish();
    if (chord == ImGuiKey_Delete || chord == ImGuiKey_Backspace) {
        set_key(ui.actions, *state.waiting, 0);
        return finish();
    }
    state.sentence = reason_against(chord);
    if (!state.sentence.empty()) return;
    const auto holder = slot_with(ui.actions, chord);
    if (holder && *holder != *state.waiting && state.conflicting != chord) {
        state.conflicting = chord;
        state.sentence = fmt::format("{} belongs to “{}”. Press it again to take it from there.",
                                     chord_text(chord), ui.actions[holder->action].title);
        return;
    }
    set_key(ui.actions, *state.waiting, chord);
    finish();
}

/// A button with the key on it.
void draw_key(Ui& ui, const KeySlot& slot) {
    KeyboardState& state = ui.keyboard;
    const ScopedId id(static_cast<int>(slot.key));
    const ImGuiKeyChord chord = ui.actions[slot.action].keys[slot.key];
    const bool waits = state.waiting == slot;
    const bool is_free = chord == 0 && !waits;
    const ScopedColor fill(ImGuiCol_Button, waits     ? palette().accent
                                            : is_free ? 0
                                                      : palette().raised);
    const ScopedColor ink(ImGuiCol_Text, waits     ? ink_on(palette().accent)
                                         : is_free ? palette().dim
                                                   : palette().text);
    const std::string label = (waits     ? "press a key"
                               : is_free ? "–"
                                         : chord_text(chord)) +
                              "###key";
    if (ImGui::Button(label.c_str(), {em(8.5F), 0})) {
        state.waiting = waits ? std::nullopt : std::optional(slot);
        state.conflicting = 0;
        state.sentence.clear();
    }
    if (!waits) ImGui::SetItemTooltip("Click, then press another key");
}

void draw_action(Ui& ui, std::size_t index) {
    Action& action = ui.actions[index];
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    text(action.title);
    for (std::size_t key = 0; key < action.keys.size(); ++key) {
        ImGui::TableNextColumn();
        draw_key(ui, {index, key});
    }
    ImGui::TableNextColumn();
    if (action.keys == action.default_keys) return;
    if (ImGui::Button(ICON_ROTATE_LEFT "###reset")) {
        for (std::size_t key = 0; key < action.keys.size(); ++key) {
            set_key(ui.actions, {index, key}, action.default_keys[key]);
        }
    }
    ImGui::SetItemTooltip("Reset to the default key");
}

void draw_menu_of_actions(Ui& ui, Menu menu, const char* title) {
    bold_text(title);
    if (!ImGui::BeginTable(title, 4, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("##action", ImGuiTableColumnFlags_WidthFixed, em(17));
    for (std::size_t i = 0; i < ui.actions.size(); ++i) {
        if (ui.actions[i].menu == menu) draw_action(ui, i);
    }
    ImGui::EndTable();
    ImGui::Dummy({0, px(6)});
}

void draw_mouse() {
    bold_text("Mouse");
    if (!ImGui::BeginTable("##mouse", 2, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("##action", ImGuiTableColumnFlags_WidthFixed, em(17));
    for (const MouseLine& line : kMouseLines) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        text(line.what);
        ImGui::TableNextColumn();
        dim_text(line.keys);
    }
    ImGui::EndTable();
}

/// What to do, or what is wrong with the key that was pressed; and the button that resets all.
void draw_head(Ui& ui) {
    KeyboardState& state = ui.keyboard;
    const float button = em(7);
    const float width = ImGui::GetContentRegionAvail().x;
    ImGui::AlignTextToFramePadding();
    if (!state.sentence.empty()) {
        colored_text(palette().warn, fit_to(state.sentence, width - button - em(1)));
    } else {
        dim_text(fit_to(state.waiting
                            ? "Press the new key. Esc keeps the old one, Delete removes it."
                            : "Click a key to change it.",
                        width - button - em(1)));
    }
    ImGui::SameLine(width - button);
    const ScopedDisabled unchanged(changed_keys(ui.actions).empty());
    if (ImGui::Button("Reset all", {button, 0})) {
        for (Action& action : ui.actions) action.keys = action.default_keys;
        state = {.is_open = true};
    }
}

}  // namespace

void draw_keyboard_window(Ui& ui) {
    KeyboardState& state = ui.keyboard;
    if (!state.is_open) {
        state = {};
        return;
    }
    take_key(ui);
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
    ImGui::SetNextWindowSize({std::min(em(46), viewport->WorkSize.x - em(1)),
                              std::min(em(44), viewport->WorkSize.y - em(1))},
                             ImGuiCond_Appearing);
    const ScopedWindow window("Keyboard###keyboard", &state.is_open,
                              ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                  ImGuiWindowFlags_NoCollapse);
    if (!window) return;
    draw_head(ui);
    const ScopedChild list("##keys");
    draw_menu_of_actions(ui, Menu::kFile, "File");
    draw_menu_of_actions(ui, Menu::kEdit, "Edit");
    draw_menu_of_actions(ui, Menu::kView, "View");
    draw_menu_of_actions(ui, Menu::kHelp, "Help");
    draw_mouse();
}

}  // namespace app
