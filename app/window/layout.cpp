#include "app/window/layout.h"

#include "app/user/settings.h"
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

using Nodes = std::array<ImGuiID, 5>;  // by DockPlace

ImGuiID& node_of(Nodes& nodes, DockPlace place) { return nodes[static_cast<size_t>(place)]; }

/// Splits in the proportions of a 16:10 window: at the left the few open traces above what is
/// selected, comparison above, the two detailed panels below.
Nodes split(ImGuiID root) {
    Nodes nodes{};
    ImGuiID rest = root;
    ImGuiID left = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, 0.18F, nullptr, &rest);
    node_of(nodes, DockPlace::kLeftBottom) =
        ImGui::DockBuilderSplitNode(left, ImGuiDir_Down, 0.66F, nullptr, &left);
    node_of(nodes, DockPlace::kLeftTop) = left;
    ImGuiID bottom = ImGui::DockBuilderSplitNode(rest, ImGuiDir_Down, 0.525F, nullptr, &rest);
    node_of(nodes, DockPlace::kTop) = rest;
    node_of(nodes, DockPlace::kBottomRight) =
        ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Right, 0.47F, nullptr, &bottom);
    node_of(nodes, DockPlace::kBottomLeft) = bottom;
    return nodes;
}

ImGuiID root_id() { return ImHashStr("temposcope panels"); }

void build_default_layout(ImGuiID root, const std::vector<DockedWindow>& windows, bool compact) {
    ImGui::DockBuilderRemoveNode(root);
    ImGui::DockBuilderAddNode(root, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(root, ImGui::GetMainViewport()->WorkSize);  // before the splits
    Nodes nodes{};
    nodes.fill(root);
    if (!compact) nodes = split(root);
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

bool is_compact_size(ImVec2 size, bool was_compact) {
    const float more = was_compact ? 1.06F : 1.0F;
    return size.x < px(1120) * more || size.y < px(640) * more;
}

bool draw_dockspace(const std::vector<DockedWindow>& windows, bool compact, bool rebuild) {
    const ImGuiID root = root_id();
    const bool build = rebuild || !ImGui::DockBuilderGetNode(root);
    if (build) build_default_layout(root, windows, compact);
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
    if (!layout.empty()) load_layout(with_new_ids(layout, "[###", "]"));
}

void place_next_window(const std::string& beside, ImGuiCond condition) {
    const ImGuiID dock = dock_id_of(beside);
    ImGui::SetNextWindowDockID(dock, condition);
    const ImGuiWindow* other = ImGui::FindWindowByID(ImHashStr(beside.c_str()));
    if (dock != 0 || !other) return;
    ImGui::SetNextWindowPos(other->Pos + ImVec2(em(2), em(2)), condition);
    ImGui::SetNextWindowSize(other->Size, condition);
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
