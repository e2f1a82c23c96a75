#include "app/window/run_dialog.h"

#include "app/panels/parts/form_rows.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace app {
namespace {

constexpr const char* kTitle = ICON_PLAY "  Run a program###run_program";

/// A simulated GPU, or the devices of this machine.
void draw_gpu(const std::vector<profiler::Gpu>& gpus, ProgramForm& form) {
    form_row("GPU");
    const ScopedId id("gpu");
    bool is_simulated = !form.gpu.empty();
    const float left = ImGui::GetCursorPosX();
    if (radio_button("simulated", is_simulated)) form.gpu = ProgramForm().gpu;
    ImGui::SetItemTooltip("No GPU is needed: the program runs PyTorch's own CUDA code on the CPU");
    ImGui::SameLine();
    if (radio_button("this machine", !is_simulated)) form.gpu.clear();
    if (form.gpu.empty()) return;
    ImGui::SetCursorPosX(left);
    ImGui::SetNextItemWidth(-1);
    if (const auto* gpu = gpu_list("##gpus", gpus, form.gpu)) form.gpu = gpu->id;
}

void draw_form(const std::vector<profiler::Gpu>& gpus, ProgramForm& form) {
    if (!ImGui::BeginTable("##form", 2)) return;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, em(5));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    form_row("Command");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::InputText("##command", &form.command);
    form_row("Folder");
    ImGui::InputTextWithHint("##folder", "where temposcope was started", &form.folder);
    draw_gpu(gpus, form);
    form_row("Steps");
    int steps = static_cast<int>(form.steps);
    if (ImGui::InputInt("##steps", &steps)) form.steps = std::clamp(steps, 1, 100);
    ImGui::EndTable();
}

}  // namespace

std::optional<ProgramForm> draw_run_dialog(const std::vector<profiler::Gpu>& gpus,
                                           RunDialogState& state) {
    if (std::exchange(state.request_open, false)) ImGui::OpenPopup(kTitle);
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(viewport->GetCenter(), ImGuiCond_Appearing, {0.5F, 0.5F});
    ImGui::SetNextWindowSize({std::min(em(34), viewport->WorkSize.x - em(2)), 0});
    if (!ImGui::BeginPopupModal(kTitle, nullptr, ImGuiWindowFlags_AlwaysAutoResize)) {
        return std::nullopt;
    }
    std::optional<ProgramForm> started;
    note_text(
        "The program runs unchanged until it has recorded these steps. Its trace lies beside it, "
        "and is opened here; if memory runs out, the window says why.");
    ImGui::Dummy({0, px(2)});
    draw_form(gpus, state.form);
    const std::string problem = problem_of(state.form);
    if (!problem.empty()) warning_note(palette().warn, problem);
    ImGui::Dummy({0, px(2)});
    {
        const ScopedDisabled disabled(!problem.empty());
        if (ImGui::Button(ICON_PLAY "  Run###start")) started = state.form;
    }
    ImGui::SameLine();
    const bool leaves = ImGui::Button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape);
    if (started || leaves) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    return started;
}

}  // namespace app
