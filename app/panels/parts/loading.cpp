#include "app/panels/parts/loading.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

namespace app {

bool draw_loading(const Documents::Loading& loading) {
    dim_text(loading.waiting > 0 ? fmt::format("{} and {} more", loading.name, loading.waiting)
                                 : loading.name);
    const float height = px(6), cross = em(1.4F);
    const ImVec2 corner = ImGui::GetCursorPos();
    const float width = ImGui::GetContentRegionAvail().x - cross - px(4);
    ImGui::SetCursorPosY(corner.y + (cross - height) / 2);
    ImGui::ProgressBar(static_cast<float>(loading.share), {width, height}, "");
    ImGui::SetCursorPos({corner.x + width + px(4), corner.y});
    const ScopedColor quiet(ImGuiCol_Button, 0);
    const ScopedStyle no_padding(ImGuiStyleVar_FramePadding, {0, 0});
    const bool stop = ImGui::Button(ICON_XMARK "##stop_reading", {cross, cross});
    ImGui::SetItemTooltip("Stop reading");
    return stop;
}

}  // namespace app
