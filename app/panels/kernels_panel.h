#pragma once

#include "app/workspace/panel_events.h"
#include "profiler/view/activity_view.h"

#include <optional>
#include <string_view>

/// What ran when, on the time axis of the Memory timeline: calls on their threads, kernels and
/// copies on their streams, coloured by class. A click picks an op: its kernels, its forward op and
/// the memory at that time light up.
namespace app {

struct KernelsState {
    bool open = true;
    double start_ns = 0;  // visible window; the plot writes it
    double end_ns = 1;
    std::optional<double> cursor_ns;  // under the mouse
    int drawn_frame = -1;             // ImGui's count: a hidden panel has no cursor
};

struct KernelsInput {
    const profiler::ActivityView* view = nullptr;  // null: nothing to show yet
    std::string_view error;                        // why there is none; empty while it is built
    const Selection* selection = nullptr;
    profiler::TimeRange limits;       // what the axis can show
    TimeWindow window;                // as last applied
    std::optional<double> cursor_ns;  // under the mouse in another panel
};

PanelEvents draw_kernels_panel(const KernelsInput& input, KernelsState& state);

}  // namespace app
