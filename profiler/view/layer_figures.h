#pragma once

#include "profiler/view/layer_view.h"

#include <cstdint>
#include <vector>

/// The line above the picture of a LayerView. A part of layer_view.cpp.
namespace profiler {

/// From the shown layers to all layers, what is saved for backward, the peak, and the maximum batch
/// where a sweep has found it.
std::vector<LayerFigure> layer_figures(const LayerRequest& request, const LayerRange& layers,
                                       int64_t num_layers);

}  // namespace profiler
