#pragma once

#include "app/workspace/selection.h"
#include "profiler/view/layer_view.h"

namespace app {

/// From one layer to the peak: figures side by side, each with a bar in proportion to its bytes.
void draw_layer_figures(const profiler::LayerView& view, const Selection& selection, float width);

}  // namespace app
