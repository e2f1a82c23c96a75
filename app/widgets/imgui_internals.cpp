#include "app/widgets/imgui_internals.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>

namespace app {

// The public interface only reads the direction.
void point_sort_arrow(int column, bool descending) {
    ImGui::TableSetColumnSortDirection(
        column, descending ? ImGuiSortDirection_Descending : ImGuiSortDirection_Ascending, false);
}

bool has_queued_input() { return !ImGui::GetCurrentContext()->InputEventsQueue.empty(); }

bool is_tooltip_due() {
    const ImGuiContext& context = *ImGui::GetCurrentContext();
    const ImGuiStyle& style = context.Style;
    if (context.HoveredId == 0 && context.HoverItemDelayId == 0) return false;
    const float longest_s =
        style.HoverStationaryDelay + std::max(style.HoverDelayShort, style.HoverDelayNormal);
    return context.MouseStationaryTimer < longest_s;
}

}  // namespace app
