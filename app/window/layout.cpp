#include "app/window/layout.h"

#include "app/widgets/theme.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace app {
namespace {

using Nodes = std::array<ImGuiID, 4>;  // by DockPlace

ImGuiID& node_of(Nodes& nodes, DockPlace place) { return nodes[static_cast<size_t>(place)]; }

/// Splits in the proportions of a 16:10 window: the memory above what fills it, and at the right
/// what to do above what is selected. Where no panel lies, the others take the room.
Nodes split(ImGuiID root, int areas) {
    Nodes nodes{};
    nodes.fill(root);
    if (areas == 1) return nodes;
    ImGuiID rest = root;
    if (areas == 4) {
        ImGuiID side = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Right, 0.22F, nullptr, &rest);
        node_of(nodes, DockPlace::kSideBottom) =
            ImGui::DockBuilderSplitNode(side, ImGuiDir_Down, 0.5F, nullptr, &side);
        node_of(nodes, DockPlace::kSideTop) = side;
    }
    const ImGuiID below = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Down, 0.46F, nullptr, &rest);
    node_of(nodes, DockPlace::kBottom) = below;
    node_of(nodes, DockPlace::kMain) = rest;
    if (areas == 2) {
        node_of(nodes, DockPlace::kSideTop) = node_of(nodes, DockPlace::kSideBottom) = below;
    }
    return nodes;
}

ImGuiID root_id() { return ImHashStr("temposcope panels"); }

void build_default_layout(ImGuiID root, const std::vector<DockedWindow>& windows, int areas) {
    ImGui::DockBuilderRemoveNode(root);
    ImGui::DockBuilderAddNode(root, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(root, ImGui::GetMainViewport()->WorkSize);  // before the splits
    Nodes nodes = split(root, areas);
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

/// Where a window is docked, also while it is closed.
ImGuiID dock_id_of(const std::string& name) {
    const ImGuiID id = ImHashStr(name.c_str());
    if (const ImGuiWindow* window = ImGui::FindWindowByID(id)) return window->DockId;
    const ImGuiWindowSettings* settings = ImGui::FindWindowSettingsByID(id);
    return settings ? settings->DockId : 0;
}

void describe_node(const ImGuiDockNode* node, std::string& text) {
    if (!node || !node->IsSplitNode()) return;
    const ImGuiAxis axis = node->SplitAxis;
    const ImGuiDockNode *first = node->ChildNodes[0], *second = node->ChildNodes[1];
    const float whole = std::max(1.0F, first->Size[axis] + second->Size[axis]);
    text += fmt::format("{:x}:{}:{:.0f}% ", node->ID, axis == ImGuiAxis_X ? "x" : "y",
                        100 * first->Size[axis] / whole);
    describe_node(first, text);
    describe_node(second, text);
}

}  // namespace

int areas_for(ImVec2 size, int areas_now) {
    const auto has_room = [&](float width, float height, int areas) {
        const float more = areas_now > 0 && areas_now < areas ? 1.06F : 1.0F;
        return size.x >= px(width) * more && size.y >= px(height) * more;
    };
    return has_room(1440, 840, 4) ? 4 : has_room(1120, 680, 2) ? 2 : 1;
}

namespace {

/// Another size of the window scales all places alike. ImGui by itself keeps the sizes of those
/// around the central one, which then gets what is left: in a small window nothing.
void scale_splits(ImGuiDockNode* node, ImVec2 factor) {
    if (!node) return;
    node->SizeRef *= factor;
    for (ImGuiDockNode* child : node->ChildNodes) scale_splits(child, factor);
}

}  // namespace

bool draw_dockspace(const std::vector<DockedWindow>& windows, int areas, bool rebuild) {
    const ImGuiID root = root_id();
    ImGuiDockNode* const node = ImGui::DockBuilderGetNode(root);
    const bool build = rebuild || !node;
    const ImVec2 size = ImGui::GetMainViewport()->WorkSize;
    if (build) {
        build_default_layout(root, windows, areas);
    } else if (node->Size.x > 0 && node->Size.y > 0 && size.x > 0 && size.y > 0) {
        if (const ImVec2 factor = size / node->Size; factor != ImVec2{1, 1}) {
            scale_splits(node, factor);
        }
    }
    ImGui::DockSpaceOverViewport(root, ImGui::GetMainViewport());
    return build;
}

std::string describe_placement(const std::vector<DockedWindow>& windows) {
    std::string text;
    for (const DockedWindow& window : windows) {
        const std::string id = window.name.substr(window.name.find("###") + 3);
        const ImGuiID dock = dock_id_of(window.name);
        if (dock == 0 && window.is_further) continue;  // it was never opened
        text += fmt::format("{}:{:x} ", id, dock);
    }
    return text;
}

std::string describe_layout(const std::vector<DockedWindow>& windows) {
    std::string text = describe_placement(windows);
    describe_node(ImGui::DockBuilderGetNode(root_id()), text);
    return text;
}

std::string save_layout() {
    std::istringstream lines(ImGui::SaveIniSettingsToMemory());
    std::string layout;
    bool keep = true;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("[")) keep = line.starts_with("[Window]") || line.starts_with("[Dock");
        if (keep) layout += line + "\n";
    }
    return layout;
}

void load_layout(const std::string& layout) {
    ImGui::LoadIniSettingsFromMemory(layout.data(), layout.size());
}

void load_saved_layout(const std::string& file) {
    std::ifstream stream(file);
    const std::string layout(std::istreambuf_iterator<char>(stream), {});
    if (!layout.empty()) load_layout(layout);
}

void place_next_window(const std::string& beside, ImGuiCond condition) {
    const ImGuiID dock = dock_id_of(beside);
    ImGui::SetNextWindowDockID(dock, condition);
    const ImGuiWindow* other = ImGui::FindWindowByID(ImHashStr(beside.c_str()));
    if (dock != 0 || !other) return;
    ImGui::SetNextWindowPos(other->Pos + ImVec2(em(2), em(2)), condition);
    ImGui::SetNextWindowSize(other->Size, condition);
}

bool share_place(const std::string& one, const std::string& other) {
    const ImGuiID dock = dock_id_of(one);
    return dock != 0 && dock == dock_id_of(other);
}

void reveal_tab(const std::string& name) {
    const ImGuiWindow* window = ImGui::FindWindowByID(ImHashStr(name.c_str()));
    ImGuiTabBar* tabs = window && window->DockNode ? window->DockNode->TabBar : nullptr;
    if (!tabs || !ImGui::TabBarFindTabByID(tabs, window->TabId)) return;
    tabs->NextSelectedTabId = window->TabId;
}

bool close_popup() {
    const int open = ImGui::GetCurrentContext()->OpenPopupStack.Size;
    if (open == 0) return false;
    ImGui::ClosePopupToLevel(open - 1, true);
    return true;
}

bool tab_bar_button(const std::string& name, const char* label, const char* tooltip) {
    ImGuiWindow* window = ImGui::FindWindowByID(ImHashStr(name.c_str()));
    ImGuiDockNode* node = window ? window->DockNode : nullptr;
    if (!node || node->VisibleWindow != window) return false;
    if (!ImGui::DockNodeBeginAmendTabBar(node)) return false;
    const bool clicked =
        ImGui::TabItemButton(label, ImGuiTabItemFlags_Trailing | ImGuiTabItemFlags_NoTooltip);
    ImGui::SetItemTooltip("%s", tooltip);
    ImGui::DockNodeEndAmendTabBar();
    return clicked;
}

bool begin_bar(const char* name, ImGuiDir side, float height) {
    return ImGui::BeginViewportSideBar(
        name, ImGui::GetMainViewport(), side, height,
        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse |
            ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking);
}

// ---- history --------------------------------------------------------------------------------

namespace {
constexpr int kFramesToSettle = 2;  // panels take their places a frame after they are docked
}

bool LayoutHistory::is_settled(const Arrangement& now, bool mouse_is_down) {
    if (mouse_is_down || !(now == candidate_)) {
        candidate_ = now;
        frames_equal_ = 0;
        return false;
    }
    return ++frames_equal_ >= kFramesToSettle;
}

void LayoutHistory::remember_current() {
    past_.push_back(std::move(*current_));
    if (past_.size() > kMaxPast) past_.erase(past_.begin());
}

void LayoutHistory::take_over(const Arrangement& now, ImVec2 window_size, std::string places) {
    current_ = Known{now, window_size, {std::move(places), now.shown_panels}};
    restoring_ = false;
}

std::optional<LayoutSnapshot> LayoutHistory::undo() {
    if (past_.empty()) return std::nullopt;
    LayoutSnapshot snapshot = std::move(past_.back().snapshot);
    past_.pop_back();
    restoring_ = true;
    frames_equal_ = 0;
    return snapshot;
}

}  // namespace app
