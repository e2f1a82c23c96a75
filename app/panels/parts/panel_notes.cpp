#include "app/panels/parts/panel_notes.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>
#include <imgui.h>

#include <string>

namespace app {
namespace {

void draw_missing_step(const char* icon, const Selection& selection) {
    const std::string advice =
        selection.a->trace->sweep_points.empty()
            ? "The capture ended before its first step. Capture it again."
            : "It is a sweep over batch sizes, which the Compare panel shows. Choose another trace "
              "as A, or record a step in the Capture panel.";
    empty_state(icon, fmt::format("{} holds no recorded step", selection.label_a.name), advice);
}

}  // namespace

void draw_unfilled(const UnfilledTexts& texts, const Selection& selection, std::string_view error) {
    if (!selection.a) {
        empty_state(texts.icon, "No trace is open", texts.purpose);
    } else if (!selection.a->has_step) {
        draw_missing_step(texts.icon, selection);
    } else if (!error.empty()) {
        empty_state(ICON_TRIANGLE_EXCLAMATION, texts.error_title, error);
    } else {
        working_line(texts.working);
    }
}

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

void draw_inferred_mark(const Selection& selection) {
    for (const DocumentPtr& document : {selection.a, selection.b}) {
        if (!document) continue;
        const std::string note(profiler::classes_note(*document->trace));
        if (note.empty()) continue;
        ImGui::SameLine(0, px(12));
        dim_text("inferred");
        return ImGui::SetItemTooltip("%s", note.c_str());
    }
}

}  // namespace app
