#pragma once

#include "app/panels/parts/panel_context.h"

#include <string>

/// Every block of memory as a shape over time, what lives at one moment, and the allocator's
/// segments at that moment.
namespace app {

/// What is typed among the allocator's settings.
struct WhatIfState {
    std::string conf_text;   // as PYTORCH_CUDA_ALLOC_CONF takes it
    std::string conf_error;  // why it cannot be used; else empty
    std::string limit_text;
    std::string limit_error;
};

struct BlocksState {
    bool show_live = true;    // the list at the right; other settings take its place
    bool is_playing = false;  // the moment moves by itself
    WhatIfState what_if;
    bool show_segments = true;          // the segments below
    bool has_room_for_segments = true;  // in the frame before
    double start_ns = 0;                // visible part of the axes, which the plot changes
    double end_ns = 1;
    double low_bytes = 0;
    double high_bytes = 1;
    float plot_left = 0;  // where the plot lay in the frame before, in pixels from the left edge
    float plot_width = 0;
};

PanelEvents draw_blocks_panel(const PanelContext& context, BlocksState& state);

}  // namespace app
