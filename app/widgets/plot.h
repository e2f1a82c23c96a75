#pragma once

#include "app/widgets/scoped.h"
#include "profiler/view/axis.h"

#include <implot.h>

#include <string_view>

/// ImPlot with ticks from profiler/view/axis.h.
namespace app {

/// Labelled ticks for an axis of `length_px` pixels; how many fit depends on the unit. Labels take
/// the width of `room_for` or more. Between BeginPlot and SetupFinish.
void setup_ticks(ImAxis axis, profiler::AxisUnit unit, double min, double max, float length_px,
                 const char* room_for = "");

inline constexpr ImPlotFlags kPlainPlot =
    ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus;

/// ImPlot's padding around a plot, until the end of the scope.
class ScopedPlotPadding : Scoped {
public:
    explicit ScopedPlotPadding(ImVec2 padding) {
        ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, padding);
    }
    ~ScopedPlotPadding() { ImPlot::PopStyleVar(); }
};

/// For axes that the mouse does not move.
inline constexpr ImPlotAxisFlags kFixedAxis =
    ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;

/// The name of the horizontal axis, in the lower right corner of the plot.
void draw_axis_name(ImDrawList* draw, std::string_view name);

}  // namespace app
