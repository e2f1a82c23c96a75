#pragma once

#include "app/panels/kernels/movement_plot.h"
#include "app/panels/parts/panel_context.h"

#include <cstddef>
#include <optional>

namespace app {

struct MovementState {
    std::size_t table_of = 0;                      // the trace in the table: 0 is A, 1 is B
    std::optional<profiler::SelectedCalls> marks;  // of the ops in the rectangle
    std::optional<profiler::RooflineBox> box;
    MovementPicture picture;
    bool had_times = true;  // in the last frame
};

/// Arithmetic, data movement and limits of each op: the roofline of the card, with arrows from A's
/// ops to B's, class shares, and the table of Ivanov et al.
PanelEvents draw_movement_panel(const PanelContext& context, MovementState& state);

}  // namespace app
