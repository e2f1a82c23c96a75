#pragma once

#include <functional>

/// What Dear ImGui knows and keeps to itself, so the source file reads its internals.
namespace app {

/// Points the sort arrow of the current table at a column. The table then reports this order, as
/// after a click.
void point_sort_arrow(int column, bool descending);

/// Whether input waits in its queue. A frame takes at most one press of each key and of each mouse
/// button, so fast typing and remote displays queue up.
bool has_queued_input();

/// Builds a frame between a move of the mouse and a press that wait in the queue together. A tab
/// takes a press only where the mouse was over it in the frame before, so a slow display would lose
/// the click.
void build_before_press(const std::function<void()>& build_frame);

/// Whether a tooltip may appear because the mouse stands still.
bool is_tooltip_due();

}  // namespace app
