#pragma once

#include "profiler/view/axis.h"

#include <implot.h>

/// ImPlot with our axes: ticks come from profiler/view/axis.h.
namespace app {

/// Between BeginPlot and SetupFinish: labelled ticks for what the axis shows. `length_px` is the
/// axis' length; labels keep a distance that their unit needs.
void setup_ticks(ImAxis axis, profiler::AxisUnit unit, double min, double max, float length_px);

inline constexpr ImPlotFlags kPlainPlot =
    ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus;

/// Axes that the mouse does not move.
inline constexpr ImPlotAxisFlags kFixedAxis =
    ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;

}  // namespace app
