#include "app/widgets/welcome.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>

namespace app {
namespace {

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

}  // namespace

WelcomeEvents draw_welcome(const std::vector<std::filesystem::path>& recent_files) {
    WelcomeEvents events;
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
        text("Where does the memory of a training step go?");
    }
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    dim_text(
        "Open traces of one step under several recipes to compare them, or capture them now. "
        "Files can also be dropped on the window.");
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, px(6)});
    {
        const ScopedColor button(ImGuiCol_Button, with_alpha(palette().accent, 0.85F));
        const ScopedColor hovered(ImGuiCol_ButtonHovered, palette().accent);
        const ScopedColor label(ImGuiCol_Text, palette().dark ? palette().plot : palette().panel);
        const ScopedFont bold(fonts().bold);
        if (ImGui::Button(ICON_FOLDER_OPEN "  Open traces")) events.open_files = true;
    }
    ImGui::SameLine();
    if (ImGui::Button(ICON_RECORD "  Capture")) events.capture = true;
    ImGui::SameLine();
    if (ImGui::Button(ICON_LIGHTBULB "  See what Tempo saves###examples")) {
        events.open_examples = true;
    }
    ImGui::SetItemTooltip(
        "Opens two traces that come with the program: a step of BERT-large on an NVIDIA A100,\n"
        "predicted with the original ops and with Tempo's.");
    if (files > 0) {
        ImGui::Dummy({0, px(4)});
        dim_text("Recent");
        for (size_t i = 0; i < files; ++i) {
            if (draw_recent_file(recent_files[i], width)) events.recent = recent_files[i];
        }
    }
    ImGui::EndGroup();
    return events;
}

}  // namespace app
