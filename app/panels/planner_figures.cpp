#include "app/panels/planner_figures.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/view/no_value.h"

#include <imgui.h>

#include <string>

namespace app {

void set_up_figure_columns() {
    ImGui::TableSetupColumn("Recipe", 0, 2.05F);
    for (const auto& [title, share] : kFigureColumns) ImGui::TableSetupColumn(title, 0, share);
}

void draw_figure_cells(const profiler::PlannerRecipe& recipe,
                       const profiler::PlannerReading& reading) {
    for (const std::string* value :
         {&recipe.max_batch_text, &reading.memory_text, &reading.step_text, &reading.rate_text}) {
        ImGui::TableNextColumn();
        const ScopedColor ink(ImGuiCol_Text, value->empty() ? palette().dim : palette().text);
        right_text(profiler::or_no_value(*value));
    }
}

}  // namespace app
