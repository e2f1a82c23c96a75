#pragma once

#include "app/panels/parts/panel_context.h"

#include <optional>

/// Mouse and keys on the time axis, the same in all panels that have it.
namespace app {

/// A range that is being selected with Shift + drag.
struct RangeDrag {
    std::optional<double> anchor_ns;  // where it began; empty: none
};

/// Begins a drag where Shift is held and the button goes down over the plot, selects up to the
/// mouse, and ends where the button is released, also outside of the plot. Inside a plot.
void drag_range(RangeDrag& drag, PanelEvents& events);

/// The axes of a plot whose lanes stand below each other and scroll: time, which the mouse pans and
/// zooms unless a range is being selected, and no labels. Between BeginPlot and the first item.
void setup_lane_axes(const profiler::TimeRange& limits, const RangeDrag& drag, double& start_ns,
                     double& end_ns, float width_px);

/// A click without a drag, Shift or a second click.
bool is_plain_click();

/// Shows a span of time with half of its length on both sides.
void zoom_to_span(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events);

/// W and S zoom around the cursor, A and D move, Z zooms to the selected range, Home shows the
/// moment of the peak, Escape lets go of the range. For the panel under the mouse, or else the one
/// with the focus.
void handle_time_keys(const PanelContext& context, PanelEvents& events);

}  // namespace app
