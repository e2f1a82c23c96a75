#include "app/panels/parts/welcome.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace app {
namespace {

void draw_reading(const Documents::Loading& loading, PanelEvents& events) {
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float width = std::min(space.x, em(26));
    ImGui::SetCursorPos(ImGui::GetCursorPos() +
                        ImVec2((space.x - width) / 2, std::max(0.0F, space.y / 2 - em(2))));
    const ScopedChild child("##reading", {width, em(4)});
    events.traces.cancel_loading = draw_loading(loading);
}

constexpr size_t kShownFiles = 5;

bool draw_recent_file(const std::filesystem::path& file, float width) {
    const ScopedId id(file.c_str());
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked = ImGui::Selectable("##file", false, 0, {width, 0});
    ImGui::SetItemTooltip("%s", file.c_str());
    ImGui::SetCursorPos(start);
    dim_text(ICON_FILE);
    ImGui::SameLine(0, px(8));
    // The folder tells apart files of the same name.
    const std::string name = file.parent_path().filename() / file.filename();
    text(fit_to(name, width - em(2)));
    return clicked;
}

/// The page shown before a trace is open: what to do next, and the recent files.
void draw_welcome(const std::vector<std::filesystem::path>& recent_files, PanelEvents& events) {
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float width = std::min(space.x, em(34));
    const size_t files = std::min(recent_files.size(), kShownFiles);
    const float height = em(8.5F) + (files > 0 ? em(2.2F) : 0) +
                         static_cast<float>(files) * ImGui::GetTextLineHeightWithSpacing();
    ImGui::SetCursorPos(ImGui::GetCursorPos() + ImVec2(std::max(0.0F, (space.x - width) / 2),
                                                       std::max(0.0F, (space.y - height) / 2)));
    ImGui::BeginGroup();
    {
        const ScopedFont title(fonts().bold, kTitleSize);
        text("What fills the memory, and what would make it fit?");
    }
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    dim_text(
        "Run your program, on a simulated GPU if you have none, or open its traces and memory "
        "snapshots. Files can also be dropped on the window.");
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, px(6)});
    {
        const ScopedColor button(ImGuiCol_Button, with_alpha(palette().accent, 0.85F));
        const ScopedColor hovered(ImGuiCol_ButtonHovered, palette().accent);
        const ScopedColor label(ImGuiCol_Text, palette().dark ? palette().plot : palette().panel);
        const ScopedFont bold(fonts().bold);
        events.advice.show_run = ImGui::Button(ICON_PLAY "  Run a program###run_program");
    }
    ImGui::SameLine();
    events.traces.ask_for_files = ImGui::Button(ICON_FOLDER_OPEN "  Open traces");
    ImGui::SameLine();
    events.advice.show_plan = ImGui::Button(ICON_SLIDERS "  Plan a model###plan_model");
    ImGui::SameLine();
    events.traces.open_examples = ImGui::Button(ICON_LIGHTBULB "  Example###examples");
    ImGui::SetItemTooltip(
        "Opens two traces that come with the program: a step of BERT-large on an NVIDIA A100,\n"
        "predicted with the original ops and with Tempo's.");
    if (files > 0) {
        ImGui::Dummy({0, px(4)});
        dim_text("Recent");
        for (size_t i = 0; i < files; ++i) {
            if (draw_recent_file(recent_files[i], width)) {
                events.traces.open.push_back(recent_files[i]);
            }
        }
    }
    ImGui::EndGroup();
}

}  // namespace

void draw_first_page(const PanelContext& context, PanelEvents& events) {
    if (const auto loading = context.workspace.loading()) return draw_reading(*loading, events);
    draw_welcome(context.recent_files, events);
}

}  // namespace app
