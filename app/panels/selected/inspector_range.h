#pragma once

#include "app/panels/parts/panel_context.h"

/// The Inspector's tables on the selected range of time: A, B and B - A.
namespace app {

void draw_range_tables(const PanelContext& context, const profiler::RangeView& view,
                       PanelEvents& events);

}  // namespace app
