#include "app/window/keyboard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

// The keys as values: the first half of keyboard.h. keyboard_window.cpp draws them.
namespace app {
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

}  // namespace app
