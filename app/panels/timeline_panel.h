#pragma once

#include "app/panels/panel_context.h"

#include <optional>

/// Memory over time, stacked by category: A above B on one time axis, and their difference below.
/// Phases are shaded and the peak is marked. Hovering reads both traces at one instant.
namespace app {

struct TimelineState {
    bool show_difference = true;
    double start_ns = 0;  // visible window, which the plots change; all plots link to it
    double end_ns = 1;
    std::optional<double> range_anchor_ns;         // where the drag that selects a range began
    std::optional<double> moment_before_click_ns;  // to go back to after a double click
};

PanelEvents draw_timeline_panel(const PanelContext& context, TimelineState& state);

}  // namespace app
