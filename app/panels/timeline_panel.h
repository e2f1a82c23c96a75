#pragma once

#include "app/workspace/panel_events.h"

#include <functional>
#include <optional>
#include <string_view>

/// Memory over time, stacked by category: two traces above each other on one aligned axis, and their
/// difference. Phases are shaded, the peak is marked; hovering reads both traces at one instant.
namespace app {

struct TimelineState {
    bool open = true;
    bool show_difference = true;
    double start_ns = 0;  // visible window; written by the plots, all of which link to it
    double end_ns = 1;
    std::optional<double> cursor_ns;        // under the mouse
    int drawn_frame = -1;                   // ImGui's count: a hidden panel has no cursor
    std::optional<double> range_anchor_ns;  // where a range selection was begun
};

struct TimelineInput {
    const profiler::TimelineView* view = nullptr;  // null: nothing to show yet
    std::string_view error;                        // why there is none; empty while it is built
    const Selection* selection = nullptr;
    profiler::TimeRange limits;       // what the axis can show
    TimeWindow window;                // as last applied
    std::optional<double> cursor_ns;  // under the mouse in another panel
    std::function<profiler::TimelineReadout(size_t source, double time_ns)> read;
};

PanelEvents draw_timeline_panel(const TimelineInput& input, TimelineState& state);

}  // namespace app
