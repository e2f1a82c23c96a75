#include "app/panels/planner_pins.h"

#include "app/panels/planner_figures.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace app {
namespace {

using profiler::PlannerPin;

void draw_pin(size_t index, const PlannerPin& pin) {
    if (!ImGui::BeginTable("##pin", kNumFigureColumns, ImGuiTableFlags_SizingStretchProp)) return;
    set_up_figure_columns();
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string number = std::to_string(index + 1);
    dim_text(number);
    ImGui::SameLine(0, px(6));
    text(fit_to(pin.recipe.name, ImGui::GetContentRegionAvail().x));
    draw_figure_cells(pin.recipe, pin.reading);
    ImGui::EndTable();
}

/// What the pin was planned for, below its row. Returns true when the pin is to be removed.
bool draw_detail(const PlannerPin& pin) {
    const ScopedFont small(fonts().text, kSmallSize);
    const std::string text = fmt::format("batch {}, {}", pin.batch_size, pin.detail);
    const bool removed = ImGui::SmallButton(ICON_XMARK "###unpin");
    ImGui::SetItemTooltip("Remove this pin");
    ImGui::SameLine(0, px(6));
    dim_text(fit_to(text, ImGui::GetContentRegionAvail().x));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
    return removed;
}

}  // namespace

void draw_pins(std::vector<PlannerPin>& pins) {
    std::optional<size_t> removed;
    for (size_t i = 0; i < pins.size(); ++i) {
        const ScopedId id(static_cast<int>(i));
        draw_pin(i, pins[i]);
        if (draw_detail(pins[i])) removed = i;
    }
    if (removed) pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(*removed));
}

}  // namespace app
