#pragma once

#include "app/workspace/selection.h"
#include "profiler/view/layers/layer_view.h"

#include <vector>

namespace app {

/// From one layer to the whole step: figures side by side, bytes with a bar in proportion to them.
void draw_layer_figures(const std::vector<profiler::PairFigure>& figures,
                        const Selection& selection, float width);

}  // namespace app
