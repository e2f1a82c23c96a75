#include "app/window/layout.h"

#include <imgui_internal.h>

#include <array>

namespace app {
namespace {

using Nodes = std::array<ImGuiID, 5>;  // by DockPlace

ImGuiID& node_of(Nodes& nodes, DockPlace place) { return nodes[static_cast<size_t>(place)]; }

/// Splits in the proportions of a 16:10 window: column of traces, comparison above, the two
/// detailed panels below.
Nodes split(ImGuiID root) {
    Nodes nodes{};
    ImGuiID rest = root;
    ImGuiID left = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, 0.155F, nullptr, &rest);
    node_of(nodes, DockPlace::kLeftBottom) =
        ImGui::DockBuilderSplitNode(left, ImGuiDir_Down, 0.42F, nullptr, &left);
    node_of(nodes, DockPlace::kLeftTop) = left;
    ImGuiID bottom = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Down, 0.485F, nullptr, &rest);
    node_of(nodes, DockPlace::kTop) = rest;
    node_of(nodes, DockPlace::kBottomRight) =
        ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Right, 0.47F, nullptr, &bottom);
    node_of(nodes, DockPlace::kBottomLeft) = bottom;
    return nodes;
}

void build_default_layout(ImGuiID root, const std::vector<DockedWindow>& windows) {
    ImGui::DockBuilderRemoveNode(root);
    ImGui::DockBuilderAddNode(root, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(root, ImGui::GetMainViewport()->WorkSize);  // before the splits
    Nodes nodes = split(root);
    for (const DockedWindow& window : windows) {
        ImGui::DockBuilderDockWindow(window.name.c_str(), node_of(nodes, window.place));
    }
    for (ImGuiID id : nodes) {
        if (ImGuiDockNode* node = ImGui::DockBuilderGetNode(id)) {
            node->LocalFlags |= ImGuiDockNodeFlags_NoWindowMenuButton;
        }
    }
    ImGui::DockBuilderFinish(root);
}

}  // namespace

bool draw_dockspace(const std::vector<DockedWindow>& windows, bool rebuild) {
    const ImGuiID root = ImGui::GetID("panels");
    const bool build = rebuild || !ImGui::DockBuilderGetNode(root);
    if (build) build_default_layout(root, windows);
    ImGui::DockSpaceOverViewport(root, ImGui::GetMainViewport());
    return build;
}

bool begin_bar(const char* name, ImGuiDir side, float height) {
    return ImGui::BeginViewportSideBar(
        name, ImGui::GetMainViewport(), side, height,
        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse |
            ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking);
}

}  // namespace app
