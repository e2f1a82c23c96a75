#pragma once

#include "app/panels/parts/panel_context.h"

namespace app {

/// What the largest panel shows before a trace is open: what to do next and the recent files, or
/// the file that is being read.
void draw_first_page(const PanelContext& context, PanelEvents& events);

}  // namespace app
