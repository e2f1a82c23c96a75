#include "app/widgets/imgui_internals.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <vector>

namespace app {

// The public interface only reads the direction.
void point_sort_arrow(int column, bool descending) {
    ImGui::TableSetColumnSortDirection(
        column, descending ? ImGuiSortDirection_Descending : ImGuiSortDirection_Ascending, false);
}

bool has_queued_input() { return !ImGui::GetCurrentContext()->InputEventsQueue.empty(); }

void build_before_press(const std::function<void()>& build_frame) {
    auto& queue = ImGui::GetCurrentContext()->InputEventsQueue;
    const auto is_move = [](const ImGuiInputEvent& event) {
        return event.Type == ImGuiInputEventType_MousePos;
    };
    const auto is_press = [](const ImGuiInputEvent& event) {
        return event.Type == ImGuiInputEventType_MouseButton && event.MouseButton.Down;
    };
    const auto move = std::find_if(queue.begin(), queue.end(), is_move);
    const auto press = std::find_if(move, queue.end(), is_press);
    if (press == queue.end()) return;
    const std::vector<ImGuiInputEvent> held_back(press, queue.end());
    queue.resize(static_cast<int>(press - queue.begin()));
    build_frame();
    for (const ImGuiInputEvent& event : held_back) queue.push_back(event);
}

bool is_tooltip_due() {
    const ImGuiContext& context = *ImGui::GetCurrentContext();
    const ImGuiStyle& style = context.Style;
    if (context.HoveredId == 0 && context.HoverItemDelayId == 0) return false;
    const float longest_s =
        style.HoverStationaryDelay + std::max(style.HoverDelayShort, style.HoverDelayNormal);
    return context.MouseStationaryTimer < longest_s;
}

}  // namespace app
