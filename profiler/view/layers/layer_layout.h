#pragma once

#include "profiler/view/layers/layer_view.h"

/// Where boxes and ribbons of a LayerView lie. A part of layer_view.cpp.
namespace profiler {

/// Sets the horizontal positions. A column is as wide as its share of the columns, and wider where
/// many bytes start or end.
void lay_out(LayerView& view);

}  // namespace profiler
