#pragma once

#include "app/panels/panel_context.h"

namespace app {

/// The open traces, and which of them are A and B.
PanelEvents draw_traces_panel(const PanelContext& context);

}  // namespace app
