#pragma once

#include "app/panels/kernels/movement_plot.h"
#include "app/workspace/selection.h"
#include "app/workspace/view_orders.h"
#include "profiler/view/kernels/movement_view.h"

#include <cstddef>
#include <optional>

namespace app {

/// What the user asked for beside the roofline.
struct MovementSideInput {
    std::optional<std::size_t> clicked;   // a row of the table's trace
    std::optional<std::size_t> table_of;  // the table shall show this trace
    bool forget_box = false;
    std::optional<MovementQuery> query;  // another order of the table
};

struct MovementSideLook {
    const Selection& selection;
    const MovementQuery& query;
    std::size_t table_of = 0;        // the trace in the table
    std::optional<MovementBox> box;  // the table lists the ops in it
    std::optional<std::size_t> selected;
    bool is_other_table = false;  // the last frame drew that of ops with times, or without
};

/// Bars of class shares, beside those of the paper where it has the same layer.
void draw_class_shares(const profiler::MovementView& view, const Selection& selection);

/// The table of the ops; their figures, and the larger of the two limits in bold.
MovementSideInput draw_movement_table(const profiler::MovementView& view,
                                      const MovementSideLook& look);

/// Everything known about one op.
void draw_movement_tooltip(const profiler::MovementView& view, const profiler::MovementViewRow& row,
                           std::size_t trace, const Selection& selection);

}  // namespace app
