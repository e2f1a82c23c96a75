#pragma once

#include "app/workspace/selection.h"
#include "profiler/view/time_map.h"

#include <memory>

/// The time axis that the Memory timeline and the Kernels panel share. It is the clock of A; the
/// clock of B is mapped onto it.
namespace app {

/// The panels show no part of the axis that is shorter: a column would then be less than one event.
inline constexpr double kMinWindowNs = 1000;

/// The visible part of the time axis, and the width of the Memory timeline's plots.
struct TimeWindow {
    double start_ns = 0;
    double end_ns = 0;
    int width_px = 0;  // 0: not drawn yet
    profiler::TimeAlignment alignment = profiler::TimeAlignment::kPhases;

    friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

/// The window with half of its length added on both sides, so that the view already holds what a
/// pan uncovers while the next view is built.
TimeWindow with_margins(TimeWindow window);

/// How far the plots of a panel begin and end inside its contents, in pixels. Panels with the same
/// insets that stand above each other have every instant in the same column of pixels.
struct PlotInsets {
    float left = 0;
    float right = 0;

    friend bool operator==(const PlotInsets&, const PlotInsets&) = default;
};

struct TimeAxis {
    TimeWindow window;
    int kernels_width_px = 0;  // of the Kernels panel; 0: not drawn yet
    int lane_width_px = 0;     // of the lane of kernels in the Memory timeline; 0: not shown
    PlotInsets insets;         // of the Memory timeline; the Kernels panel takes the same
    std::shared_ptr<const profiler::Alignment>
        alignment;               // of A and B; null unless both have steps
    profiler::TimeRange limits;  // all that A and B recorded

    /// Computes `alignment` and `limits` for the selected A and B, and shows all of the axis.
    void align(const Selection& selection);
    /// Shows all of the axis.
    void fit();
    /// Moves the window to a tensor that lives outside it; keeps the zoom.
    void reveal(const SelectedTensor& tensor);
    /// Moves the window to a span that lies outside it, and zooms in on one too short to be seen.
    void reveal(const profiler::TimeRange& span);
};

}  // namespace app
