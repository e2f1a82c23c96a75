#pragma once

#include "app/panels/dock_place.h"

#include <imgui.h>

#include <string>
#include <vector>

/// The default layout, and what the layout is now.
namespace app {

struct DockedWindow {
    std::string name;  // as given to ImGui::Begin
    DockPlace place = DockPlace::kTop;
    bool is_further = false;  // not the first window of its panel
};

/// Whether a window of this size gets the compact layout, in which all panels are tabs of one
/// place. A compact window becomes wide only when there is room to spare, so that the layout does
/// not flicker while the user drags the window's edge.
bool is_compact_size(ImVec2 size, bool was_compact);

/// The area in which panels dock: the window without its bars. Builds the default layout, wide or
/// compact, if there is no saved layout or `rebuild` is set. Returns true if it built the layout.
bool draw_dockspace(const std::vector<DockedWindow>& windows, bool compact, bool rebuild);

/// Which window lies in which place, as text to compare: it changes when the user moves a panel,
/// and does not depend on the size of the window.
std::string describe_placement(const std::vector<DockedWindow>& windows);
/// The same with the share of the window that each place has.
std::string describe_layout(const std::vector<DockedWindow>& windows);

/// Windows and places as ImGui writes them to its file, without tables.
std::string save_layout();
/// Only between frames.
void load_layout(const std::string& layout);

/// The next window appears as a tab beside another one, or near it if that floats.
void place_next_window(const std::string& beside, ImGuiCond condition);

/// Scrolls the tabs among which this window lies to its own tab.
void reveal_tab(const std::string& name);

/// Closes the innermost menu or popup; false when none is open.
bool close_popup();

/// A small button at the right end of the tab bar in which the window `name` is the visible one.
/// Returns true when it was clicked.
bool tab_bar_button(const std::string& name, const char* label, const char* tooltip);

/// A bar over the window's whole width. Call ImGui::End in any case.
bool begin_bar(const char* name, ImGuiDir side, float height);

}  // namespace app
