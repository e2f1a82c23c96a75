#include "app/widgets/plot.h"

#include "app/widgets/plot_marks.h"
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

void setup_fixed_axes(const FixedAxis& x, const FixedAxis& y) {
    ImPlot::SetupAxes(nullptr, nullptr, kFixedAxis | x.flags, kFixedAxis | y.flags);
    setup_ticks(ImAxis_X1, x.unit, x.first, x.last, x.length_px);
    setup_ticks(ImAxis_Y1, y.unit, y.first, y.last, y.length_px);
    ImPlot::SetupAxisLimits(ImAxis_X1, x.first, x.last, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, y.first, y.last, ImPlotCond_Always);
    ImPlot::SetupFinish();
}

PlotMap current_plot_map() {
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    return {ImPlot::GetPlotPos(), ImPlot::GetPlotSize(), limits.X.Min,
            limits.X.Max,         limits.Y.Min,          limits.Y.Max};
}

float tag_height() { return ImGui::GetTextLineHeight() + px(3); }

void draw_tag(ImDrawList* draw, ImVec2 foot, std::string_view text, ImU32 ground) {
    const float left = ImPlot::GetPlotPos().x, width = text_width(text) + px(10);
    const float right = std::max(left, left + ImPlot::GetPlotSize().x - width);
    const ImVec2 corner{std::clamp(foot.x - width / 2, left, right), foot.y - tag_height()};
    text_on_plate(draw, corner + ImVec2(px(5), px(1)), text, ink_on(ground), ground, {5, 1});
}

}  // namespace app
