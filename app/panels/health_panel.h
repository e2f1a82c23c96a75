#pragma once

#include "app/panels/panel_events.h"

/// What the captures of A and B could not see or had to assume, and what to do about it.
namespace app {

struct HealthState {
    bool open = true;
};

PanelEvents draw_health_panel(const Selection& selection, HealthState& state);

}  // namespace app
