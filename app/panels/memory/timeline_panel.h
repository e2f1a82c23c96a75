#pragma once

#include "app/panels/parts/panel_context.h"
#include "app/panels/parts/timeline_drawing.h"

#include <optional>

/// Memory over time, stacked by category: A above B on one time axis, and their difference below.
/// Phases are shaded and the peak is marked; the modules and kernels that run stand below, on the
/// same pixels. Hovering reads both traces at one instant.
namespace app {

struct TimelineState {
    bool show_difference = true;
    bool show_modules = true;
    bool show_kernels = true;
    double start_ns = 0;  // visible window, which the plots change; all plots link to it
    double end_ns = 1;
    RangeDrag range;
    std::optional<double> moment_before_click_ns;  // to go back to after a double click
    bool on_handle = false;                        // the mouse was over the handle of the moment
    bool pressed_on_handle = false;                // the last click began there
    bool drags_moment = false;
    /// False: it is switched on, and the last frame had no room for it.
    bool has_room_for_difference = true;
    bool has_room_for_modules = true;
    bool has_room_for_kernels = true;
    float plot_left_px = 0;  // edges of the plots on the screen, in the last frame
    float plot_right_px = 0;
    float plot_foot_px = 0;  // of the last plot of a trace
};

PanelEvents draw_timeline_panel(const PanelContext& context, TimelineState& state);

}  // namespace app
