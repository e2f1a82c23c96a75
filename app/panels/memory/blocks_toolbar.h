#pragma once

#include "app/panels/memory/blocks_panel.h"
#include "profiler/view/memory/blocks_view.h"

namespace app {

/// What is shown and in which colours, and the switches of the parts of the panel.
void draw_blocks_toolbar(const PanelContext& context, BlocksState& state, PanelEvents& events);
/// Colours at the left, what is not drawn at the right.
void draw_blocks_legend(const PanelContext& context, const profiler::BlocksView& view,
                        PanelEvents& events);

}  // namespace app
