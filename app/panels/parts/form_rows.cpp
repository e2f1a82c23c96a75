#include "app/panels/parts/form_rows.h"

#include "app/widgets/check_box.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <imgui.h>

#include <algorithm>

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

}  // namespace app
