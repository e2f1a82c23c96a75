#include "app/widgets/plot.h"

#include "app/widgets/theme.h"

#include <algorithm>
#include <vector>

namespace app {

void setup_ticks(ImAxis axis, profiler::AxisUnit unit, double min, double max, float length_px) {
    const bool vertical = axis >= ImAxis_Y1;
    const int count =
        std::clamp(static_cast<int>(length_px / px(vertical ? 26 : 84)), vertical ? 3 : 2, 64);
    const std::vector<profiler::Tick> ticks = profiler::make_ticks(unit, min, max, count);
    std::vector<double> values;
    std::vector<const char*> labels;
    for (const profiler::Tick& tick : ticks) {
        values.push_back(tick.value);
        labels.push_back(tick.label.c_str());
    }
    // ImPlot copies the labels. It draws its own ticks unless it gets at least one.
    if (!values.empty()) {
        ImPlot::SetupAxisTicks(axis, values.data(), static_cast<int>(values.size()), labels.data());
    }
}

}  // namespace app
