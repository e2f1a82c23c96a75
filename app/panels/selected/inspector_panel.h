#pragma once

#include "app/panels/parts/panel_context.h"

/// Everything about what is selected: a tensor or block, a call or kernel, a range of time, a
/// moment. Chips at the top remove one of them each; buttons go back to earlier selections.
namespace app {

PanelEvents draw_inspector_panel(const PanelContext& context);

}  // namespace app
