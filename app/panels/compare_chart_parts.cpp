#include "app/panels/compare_chart_parts.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>

namespace app {

void chart_title(std::string_view title, std::string_view subtitle, float width) {
    const float left = ImGui::GetCursorPosX();
    bold_text(fit_to(title, width));
    if (subtitle.empty()) return;
    ImGui::SameLine(0, px(8));
    dim_text(fit_to(subtitle, left + width - ImGui::GetCursorPosX()));
}

ImVec2 below_title(ImVec2 size) { return {size.x, size.y - ImGui::GetTextLineHeightWithSpacing()}; }

void chart_note(const char* id, std::string_view note, ImVec2 size) {
    const ScopedChild child(id, size);
    ImGui::Dummy({0, std::max(0.0F, size.y * 0.32F)});
    note_text(note);
}

std::string why_empty(const profiler::CompareView& view, const std::string& not_measured) {
    return view.no_plan_text.empty() ? not_measured : view.no_plan_text;
}

bool mouse_in(ImVec2 upper_left, ImVec2 lower_right) {
    return ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(upper_left, lower_right);
}

}  // namespace app
