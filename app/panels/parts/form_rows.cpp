#include "app/panels/parts/form_rows.h"

#include "app/widgets/icons.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/workspace.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/trace/units.h"

#include <imgui.h>

#include <algorithm>
#include <string>

namespace app {

void form_row(const char* label) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    dim_text(label);
    ImGui::TableNextColumn();
    ImGui::SetNextItemWidth(-1);
}

void recipes_row(std::vector<std::string>& chosen, const std::string& preview,
                 bool (*is_offered)(const models::Recipe&)) {
    form_row("Recipes");
    ImGui::SetNextWindowSizeConstraints({em(36), 0}, {em(60), em(30)});
    if (!ImGui::BeginCombo("##recipes", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
    std::erase_if(chosen, [](const std::string& name) {
        bool on = true;
        if (!models::is_preset(name)) check_box(name.c_str(), &on);
        return !on;
    });
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        if (!is_offered(preset.recipe)) continue;
        const std::string name(preset.name);
        const auto at = std::find(chosen.begin(), chosen.end(), name);
        bool on = at != chosen.end();
        if (check_box(name.c_str(), &on)) {
            on ? void(chosen.push_back(name)) : void(chosen.erase(at));
        }
        ImGui::SameLine(em(17));
        dim_text(preset.summary);
    }
    ImGui::EndCombo();
}

const profiler::Gpu* gpu_rows(const std::vector<profiler::Gpu>& gpus, std::string_view chosen_id) {
    const profiler::Gpu* clicked = nullptr;
    const auto memory_of = [](const profiler::Gpu& gpu) {
        return profiler::format_bytes(static_cast<int64_t>(gpu.memory_bytes.value));
    };
    float name_width = 0, memory_width = 0;
    for (const profiler::Gpu& gpu : gpus) {
        name_width = std::max(name_width, text_width(gpu.name));
        memory_width = std::max(memory_width, text_width(memory_of(gpu)));
    }
    for (const profiler::Gpu& gpu : gpus) {
        const ImVec2 corner = ImGui::GetCursorScreenPos();
        const float width = name_width + em(1) + memory_width;
        if (ImGui::Selectable(gpu.name.c_str(), gpu.id == chosen_id, 0, {width, 0})) clicked = &gpu;
        const std::string memory = memory_of(gpu);
        ImGui::GetWindowDrawList()->AddText({corner.x + width - text_width(memory), corner.y},
                                            palette().dim, memory.c_str());
    }
    return clicked;
}

const profiler::Gpu* gpu_list(const char* id, const std::vector<profiler::Gpu>& gpus,
                              std::string_view chosen_id) {
    const auto known = std::find_if(gpus.begin(), gpus.end(),
                                    [&](const profiler::Gpu& gpu) { return gpu.id == chosen_id; });
    const std::string shown = known != gpus.end()
                                  ? std::string(profiler::short_gpu_name(known->name))
                                  : std::string(chosen_id);
    if (!ImGui::BeginCombo(id, shown.c_str(), ImGuiComboFlags_HeightLarge)) return nullptr;
    const profiler::Gpu* clicked = gpu_rows(gpus, chosen_id);
    ImGui::EndCombo();
    return clicked;
}

void draw_nothing_planned(const Workspace& workspace, PanelEvents& events) {
    empty_state(ICON_SLIDERS, "A is a program of your own",
                "What to do says on which GPUs it fits. Built-in models are planned here.");
    ImGui::Spacing();
    const char* const label = "Plan a built-in model###plan_built_in";
    const float width = text_width("Plan a built-in model") + em(1.2F);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0F, (ImGui::GetContentRegionAvail().x - width) / 2));
    if (!ImGui::Button(label, {width, 0})) return;
    events.queries.planner = workspace.queries().planner;
    events.queries.planner->is_chosen = true;
}

}  // namespace app
