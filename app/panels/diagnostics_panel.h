#pragma once

#include "app/workspace/panel_events.h"

/// What the captures of A and B could not see or had to assume, and what to do about it.
namespace app {

struct DiagnosticsState {
    bool open = true;
};

PanelEvents draw_diagnostics_panel(const Selection& selection, DiagnosticsState& state);

}  // namespace app
