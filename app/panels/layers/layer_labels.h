#pragma once

#include "app/panels/layers/layer_ribbons.h"

#include <vector>

namespace app {

/// Names and sizes of the ribbons, large ribbons first: level inside the ribbon, else along it. A
/// change between A and B that finds no room inside gets a label beside, up to a few, where it
/// meets no other label.
void draw_ribbon_labels(ImDrawList* draw, const LayerPicture& picture,
                        const profiler::LayerView& view, const std::vector<RibbonLook>& looks);

}  // namespace app
