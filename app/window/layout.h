#pragma once

#include <imgui.h>

#include <string>
#include <vector>

/// Where panels lie before the user moves them. The only file that includes imgui_internal.h.
namespace app {

enum class DockPlace {
    kLeftTop,      // narrow column
    kLeftBottom,   //
    kTop,          // wide, above the two below
    kBottomLeft,   //
    kBottomRight,  // several panels share a place as tabs
};

struct DockedWindow {
    std::string name;  // as given to ImGui::Begin
    DockPlace place = DockPlace::kTop;
};

/// The area in which panels dock: the window without its bars. Builds the default layout when the
/// saved one has none, or when `rebuild` asks for it. Returns true when it was built.
bool draw_dockspace(const std::vector<DockedWindow>& windows, bool rebuild);

/// A bar over the window's whole width. Call ImGui::End in any case.
bool begin_bar(const char* name, ImGuiDir side, float height);

}  // namespace app
