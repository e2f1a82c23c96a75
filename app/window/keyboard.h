#pragma once

#include "app/window/actions.h"

#include <imgui.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The keys of actions: as text, changed by the user, and the page that lists them.
namespace app {

struct Ui;

/// The keys that differ from the defaults: from the title of an action to "Ctrl+K, Slash".
using ChangedKeys = std::map<std::string, std::string>;

/// "Ctrl+Shift+E"; empty for no key.
std::string chord_text(ImGuiKeyChord chord);
/// The opposite; nullopt if the text names no key.
std::optional<ImGuiKeyChord> parse_chord(std::string_view text);

/// Gives the actions their saved keys. Titles that no action has are ignored. Returns a sentence
/// about keys that cannot be read, which stay as they are; empty: none.
std::string apply_keys(std::vector<Action>& actions, const ChangedKeys& keys);
ChangedKeys changed_keys(const std::vector<Action>& actions);

/// One key of one action.
struct KeySlot {
    std::size_t action = 0;
    std::size_t key = 0;  // in Action::keys

    friend bool operator==(const KeySlot&, const KeySlot&) = default;
};
/// Where this chord is used already.
std::optional<KeySlot> slot_with(const std::vector<Action>& actions, ImGuiKeyChord chord);
/// Why no action may have this chord; empty if one may.
std::string reason_against(ImGuiKeyChord chord);
/// Gives the chord to the slot and takes it from its former slot.
void set_key(std::vector<Action>& actions, const KeySlot& slot, ImGuiKeyChord chord);

struct KeyboardState {
    bool is_open = false;
    std::optional<KeySlot> waiting;  // for the key that the user presses next
    ImGuiKeyChord conflicting = 0;   // pressed once; pressed again, it is taken
    std::string sentence;            // about the key that was pressed
};

/// Lists every action with its keys, and what the mouse does. A click on a key waits for another.
void draw_keyboard_window(Ui& ui);

}  // namespace app
