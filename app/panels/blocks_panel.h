#pragma once

#include "app/panels/panel_context.h"

/// Every block of memory as a shape over time, what lives at one moment, and the allocator's
/// segments at that moment.
namespace app {

struct BlocksState {
    bool show_live = true;      // the list at the right
    bool show_segments = true;  // the segments below
    double start_ns = 0;        // visible part of the axes, which the plot changes
    double end_ns = 1;
    double low_bytes = 0;
    double high_bytes = 1;
    float plot_left = 0;  // where the plot lay in the frame before, in pixels from the left edge
    float plot_width = 0;
};

PanelEvents draw_blocks_panel(const PanelContext& context, BlocksState& state);

}  // namespace app
