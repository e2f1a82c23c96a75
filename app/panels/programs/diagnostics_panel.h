#pragma once

#include "app/panels/parts/panel_context.h"

namespace app {

/// What the captures of A and B could not see or had to assume, and what to do about it.
PanelEvents draw_diagnostics_panel(const PanelContext& context);

}  // namespace app
