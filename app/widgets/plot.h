#pragma once

#include "app/widgets/scoped.h"
#include "profiler/view/axis.h"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <string_view>

/// ImPlot with ticks from profiler/view/axis.h, and the parts that plots of panels share.
namespace app {

// ---- axes -----------------------------------------------------------------------------------

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

struct FixedAxis {
    profiler::AxisUnit unit = profiler::AxisUnit::kCount;
    double first = 0;
    double last = 1;
    float length_px = 0;
    ImPlotAxisFlags flags = 0;  // beside those of kFixedAxis
};
/// Both axes with their ticks. Between BeginPlot and the first item.
void setup_fixed_axes(const FixedAxis& x, const FixedAxis& y);

// ---- what lies in the plot ------------------------------------------------------------------

/// From plot units to pixels; both axes are linear.
struct PlotMap {
    ImVec2 corner;  // upper left
    ImVec2 size;
    double x_min = 0, x_max = 1;
    double y_min = 0, y_max = 1;

    float x(double value) const {
        return corner.x + static_cast<float>((value - x_min) / (x_max - x_min) * size.x);
    }
    float y(double value) const {
        return corner.y + static_cast<float>((y_max - value) / (y_max - y_min) * size.y);
    }
    float right() const { return corner.x + size.x; }
    float bottom() const { return corner.y + size.y; }
};

/// The nearest whole pixel; of NaN, a pixel left of and above any screen. It is inline because a
/// frame places ten thousand columns, and std::round would be a call for each.
inline float whole_pixel(float position) {
    constexpr float kFar = 1 << 20;  // farther than any screen reaches
    const double inside = position > -kFar ? std::min(position, kFar) : -kFar;
    return static_cast<float>(static_cast<int>(inside + kFar + 0.5) - static_cast<int>(kFar));
}

/// What a plot shows of a time, in whole pixels: at least one.
struct PixelSpan {
    float left = 0;
    float right = 0;

    float width() const { return right - left; }
};
inline PixelSpan span_in_pixels(const PlotMap& map, double start_ns, double end_ns) {
    const float left = whole_pixel(std::max(map.x(start_ns), map.corner.x));
    return {left, std::max(left + 1, whole_pixel(std::min(map.x(end_ns), map.right())))};
}

/// The map of the current plot. Between SetupFinish and EndPlot.
PlotMap current_plot_map();

/// A tag in the current font: a value on a ground of its own at the foot of a vertical line, inside
/// of the current plot. `foot` is the middle of its lower edge.
void draw_tag(ImDrawList* draw, ImVec2 foot, std::string_view text, ImU32 ground);
float tag_height();

}  // namespace app
