#include "app/panels/planner_pins.h"

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

void draw_figure(const std::string& value) {
    ImGui::TableNextColumn();
    const ScopedFont mono(fonts().mono, kSmallSize);
    value.empty() ? dim_text("–") : right_text(value);
}

/// Returns true when it is to be removed.
bool draw_pin(size_t index, const PlannerPin& pin) {
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string number = std::to_string(index + 1);
    dim_text(number);
    ImGui::SameLine(0, px(6));
    text(fit_to(pin.recipe.name, ImGui::GetContentRegionAvail().x));
    draw_figure(pin.recipe.max_batch_text);
    draw_figure(pin.reading.memory_text);
    draw_figure(pin.reading.step_text);
    draw_figure(pin.reading.rate_text);
    ImGui::TableNextColumn();
    const bool removed = ImGui::SmallButton(ICON_XMARK "###unpin");
    ImGui::SetItemTooltip("Remove this pin");
    return removed;
}

/// What the pin was planned for, below its row and as wide as the table.
void draw_detail(const PlannerPin& pin, float width) {
    const ScopedFont small(fonts().text, kSmallSize);
    const std::string text = fmt::format("batch {}, {}", pin.batch_size, pin.detail);
    dim_text(fit_to(text, width));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
}

}  // namespace

void draw_pins(std::vector<PlannerPin>& pins) {
    std::optional<size_t> removed;
    for (size_t i = 0; i < pins.size(); ++i) {
        const ScopedId id(static_cast<int>(i));
        const float width = ImGui::GetContentRegionAvail().x;
        if (!ImGui::BeginTable("##pin", 6, ImGuiTableFlags_SizingStretchProp)) continue;
        ImGui::TableSetupColumn("recipe", 0, 2.0F);
        ImGui::TableSetupColumn("max", 0, 1.0F);
        ImGui::TableSetupColumn("memory", 0, 1.3F);
        ImGui::TableSetupColumn("step", 0, 1.1F);
        ImGui::TableSetupColumn("rate", 0, 0.9F);
        ImGui::TableSetupColumn("remove", ImGuiTableColumnFlags_WidthFixed, em(1.6F));
        if (draw_pin(i, pins[i])) removed = i;
        ImGui::EndTable();
        draw_detail(pins[i], width);
    }
    if (removed) pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(*removed));
}

}  // namespace app
