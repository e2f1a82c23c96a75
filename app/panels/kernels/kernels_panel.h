#pragma once

#include "app/panels/parts/panel_context.h"
#include "app/panels/parts/timeline_drawing.h"

/// What ran when, on the time axis of the Memory timeline: phases, layers and their modules above,
/// then calls on their threads, kernels and copies on their streams, coloured by class. A click
/// selects an op and highlights its kernels, its forward or backward op, and its time in the Memory
/// timeline.
namespace app {

struct KernelsState {
    double start_ns = 0;  // visible window, which the plot changes
    double end_ns = 1;
    RangeDrag range;
    float plot_left_px = 0;  // edges of the plot on the screen, in the last frame
    float plot_right_px = 0;
};

PanelEvents draw_kernels_panel(const PanelContext& context, KernelsState& state);

}  // namespace app
