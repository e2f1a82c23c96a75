#pragma once

/// What Dear ImGui still has to do although no event will come. It keeps this to itself, so the
/// source file reads its internals.
namespace app {

/// Whether input waits in its queue. A frame takes at most one press of each key and of each mouse
/// button, so fast typing and remote displays queue up.
bool has_queued_input();

/// Whether a tooltip may appear because the mouse stands still.
bool is_tooltip_due();

}  // namespace app
