#include "app/widgets/plot.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace app {
namespace {

/// Drops every second tick until the labels of a vertical axis stand clear of each other.
void thin_out(std::vector<profiler::Tick>& ticks, double px_per_unit) {
    const auto are_close = [&] {
        return ticks.size() > 2 && (ticks[1].value - ticks[0].value) * px_per_unit <
                                       static_cast<double>(ImGui::GetTextLineHeight());
    };
    while (are_close()) {
        std::vector<profiler::Tick> kept;
        for (size_t i = 0; i < ticks.size(); i += 2) kept.push_back(std::move(ticks[i]));
        ticks = std::move(kept);
    }
}

}  // namespace

void setup_ticks(ImAxis axis, profiler::AxisUnit unit, double min, double max, float length_px,
                 const char* room_for) {
    const bool vertical = axis >= ImAxis_Y1;
    const int count =
        std::clamp(static_cast<int>(length_px / px(vertical ? 26 : 84)), vertical ? 3 : 2, 64);
    std::vector<profiler::Tick> ticks = profiler::make_ticks(unit, min, max, count);
    if (vertical) thin_out(ticks, static_cast<double>(length_px) / (max - min));
    std::vector<double> values;
    std::vector<const char*> labels;
    const float least_width = ImGui::CalcTextSize(room_for).x;
    for (profiler::Tick& tick : ticks) {
        while (ImGui::CalcTextSize(tick.label.c_str()).x < least_width) tick.label.insert(0, " ");
        values.push_back(tick.value);
        labels.push_back(tick.label.c_str());
    }
    // ImPlot copies the labels. It draws its own ticks unless it gets at least one.
    if (!values.empty()) {
        ImPlot::SetupAxisTicks(axis, values.data(), static_cast<int>(values.size()), labels.data());
    }
}

void draw_axis_name(ImDrawList* draw, std::string_view name) {
    const ScopedFont small(fonts().text, kSmallSize);
    const ImVec2 corner = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
    draw->AddText({corner.x + size.x - text_width(name) - px(6),
                   corner.y + size.y - ImGui::GetTextLineHeight() - px(4)},
                  palette().dim, name.data(), name.data() + name.size());
}

}  // namespace app
