#include "app/window/keyboard.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/ui.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace app {

// ---- the keys as values ---------------------------------------------------------------------

namespace {

constexpr std::array<std::pair<ImGuiKey, std::string_view>, 3> kModifiers{
    {{ImGuiMod_Ctrl, "Ctrl+"}, {ImGuiMod_Alt, "Alt+"}, {ImGuiMod_Shift, "Shift+"}}};

ImGuiKey key_of(ImGuiKeyChord chord) { return static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_); }

bool is_modifier(ImGuiKey key) {
    return (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper) ||
           (key >= ImGuiKey_ReservedForModCtrl && key <= ImGuiKey_ReservedForModSuper);
}

bool is_on_keyboard(ImGuiKey key) {
    return key >= ImGuiKey_NamedKey_BEGIN && key < ImGuiKey_GamepadStart && !is_modifier(key);
}

/// "Ctrl+K, Slash"; empty for no key at all.
std::string keys_text(const std::array<ImGuiKeyChord, 2>& keys) {
    std::vector<std::string> texts;
    for (const ImGuiKeyChord chord : keys) {
        if (chord != 0) texts.push_back(chord_text(chord));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::optional<std::array<ImGuiKeyChord, 2>> parse_keys(std::string_view text) {
    std::array<ImGuiKeyChord, 2> keys{};
    std::size_t count = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(", "), text.size());
        const auto chord = parse_chord(text.substr(0, end));
        if (!chord || count == keys.size() || !reason_against(*chord).empty()) return std::nullopt;
        keys[count++] = *chord;
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return keys;
}

}  // namespace

namespace {
/// What is printed on the key.
const char* name_of_key(ImGuiKey key) {
    static constexpr std::array<std::pair<ImGuiKey, const char*>, 13> kPrinted{
        {{ImGuiKey_LeftArrow, "Left"},
         {ImGuiKey_RightArrow, "Right"},
         {ImGuiKey_UpArrow, "Up"},
         {ImGuiKey_DownArrow, "Down"},
         {ImGuiKey_Slash, "/"},
         {ImGuiKey_Backslash, "\\"},
         {ImGuiKey_Comma, ","},
         {ImGuiKey_Period, "."},
         {ImGuiKey_Semicolon, ";"},
         {ImGuiKey_Minus, "-"},
         {ImGuiKey_Equal, "="},
         {ImGuiKey_LeftBracket, "["},
         {ImGuiKey_RightBracket, "]"}}};
    for (const auto& [printed, name] : kPrinted) {
        if (printed == key) return name;
    }
    return ImGui::GetKeyName(key);
}
}  // namespace

std::string chord_text(ImGuiKeyChord chord) {
    if (chord == 0) return "";
    std::string text;
    for (const auto& [modifier, name] : kModifiers) {
        if (chord & modifier) text += name;
    }
    return text + name_of_key(key_of(chord));
}

std::optional<ImGuiKeyChord> parse_chord(std::string_view text) {
    ImGuiKeyChord chord = 0;
    for (const auto& [modifier, name] : kModifiers) {
        if (!text.starts_with(name)) continue;
        chord |= modifier;
        text.remove_prefix(name.size());
    }
    for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_NamedKey_END; ++key) {
        const auto named = static_cast<ImGuiKey>(key);
        if (!is_on_keyboard(named)) continue;
        if (text == name_of_key(named) || text == ImGui::GetKeyName(named)) return chord | named;
    }
    return std::nullopt;
}

std::string apply_keys(std::vector<Action>& actions, const ChangedKeys& keys) {
    std::vector<std::string> unread;
    for (Action& action : actions) {
        const auto saved = keys.find(action.title);
        if (saved == keys.end()) continue;
        if (const auto parsed = parse_keys(saved->second)) {
            action.keys = *parsed;
        } else {
            unread.push_back(action.title);
        }
    }
    if (unread.empty()) return "";
    return fmt::format(
        "The saved keys of these commands cannot be read, so they have their "
        "default keys: {}.",
        fmt::join(unread, ", "));
}

ChangedKeys changed_keys(const std::vector<Action>& actions) {
    ChangedKeys changed;
    for (const Action& action : actions) {
        if (action.keys != action.default_keys) changed[action.title] = keys_text(action.keys);
    }
    return changed;
}

std::optional<KeySlot> slot_with(const std::vector<Action>& actions, ImGuiKeyChord chord) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
        for (std::size_t k = 0; k < actions[i].keys.size(); ++k) {
            if (actions[i].keys[k] == chord) return KeySlot{i, k};
        }
    }
    return std::nullopt;
}

std::string reason_against(ImGuiKeyChord chord) {
    // Panels and text fields use these by themselves.
    constexpr std::array kZoom{ImGuiKey_W, ImGuiKey_S, ImGuiKey_A, ImGuiKey_D, ImGuiKey_Z};
    constexpr std::array kMove{ImGuiKey_Enter,   ImGuiKey_KeypadEnter, ImGuiKey_Tab,
                               ImGuiKey_Space,   ImGuiKey_LeftArrow,   ImGuiKey_RightArrow,
                               ImGuiKey_UpArrow, ImGuiKey_DownArrow,   ImGuiKey_Backspace,
                               ImGuiKey_Delete};
    const auto is_one_of = [&](const auto& keys) {
        return std::find(keys.begin(), keys.end(), key_of(chord)) != keys.end();
    };
    const bool is_alone = (chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) == 0;
    if (is_alone && is_one_of(kZoom)) {
        return fmt::format("{} moves the time axis; press another key.", chord_text(chord));
    }
    if (is_alone && is_one_of(kMove)) {
        return fmt::format("{} moves within panels; press another key.", chord_text(chord));
    }
    return "";
}

void set_key(std::vector<Action>& actions, const KeySlot& slot, ImGuiKeyChord chord) {
    if (chord != 0) {
        if (const auto holder = slot_with(actions, chord)) {
            actions[holder->action].keys[holder->key] = 0;
        }
    }
    actions[slot.action].keys[slot.key] = chord;
}

// ---- the window that shows them -------------------------------------------------------------

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
