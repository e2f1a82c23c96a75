#pragma once

#include "app/panels/dock_place.h"

#include <imgui.h>

#include <string>
#include <vector>

/// Where panels lie before the user moves them. The only file that includes imgui_internal.h.
namespace app {

struct DockedWindow {
    std::string name;  // as given to ImGui::Begin
    DockPlace place = DockPlace::kTop;
};

/// Whether a window of this size gets the compact layout: all panels as tabs of one place. What
/// `was_compact` becomes wide only when there is room to spare, so that dragging the window's edge
/// does not make it flicker.
bool is_compact_size(ImVec2 size, bool was_compact);

/// The area in which panels dock: the window without its bars. Builds the default layout, wide or
/// compact, when the saved one has none, or when `rebuild` asks for it. Returns true when it was
/// built.
bool draw_dockspace(const std::vector<DockedWindow>& windows, bool compact, bool rebuild);

/// Which window lies in which place, as text to be compared: the user has moved one when it
/// changes. The size of the window does not show in it.
std::string describe_placement(const std::vector<DockedWindow>& windows);
/// The same with the shares that places have of the window.
std::string describe_layout(const std::vector<DockedWindow>& windows);

/// Windows and places as ImGui writes them to its file, without tables.
std::string save_layout();
/// Only between frames.
void load_layout(const std::string& layout);

/// Closes the innermost menu or popup; false when none is open.
bool close_popup();

/// A bar over the window's whole width. Call ImGui::End in any case.
bool begin_bar(const char* name, ImGuiDir side, float height);

}  // namespace app
