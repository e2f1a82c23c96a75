#pragma once

namespace app {

/// ImGui's check box with an edge, so that an empty one does not look like a gap. Returns true when
/// it was clicked.
bool check_box(const char* label, bool* value);
/// The same for a choice of one of several.
bool radio_button(const char* label, bool is_chosen);

}  // namespace app
