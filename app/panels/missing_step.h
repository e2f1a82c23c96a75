#pragma once

#include "app/workspace/panel_events.h"

namespace app {

/// In place of what A would show: it holds no recorded step, and how to get one.
void draw_missing_step(const char* icon, const Selection& selection);

}  // namespace app
