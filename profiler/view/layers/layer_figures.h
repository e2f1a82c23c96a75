#pragma once

#include "profiler/view/programs/pair_figures.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// The line of figures above the picture of a layer.
namespace profiler {

struct LayerRange;
struct LayerRequest;

/// From the shown layers to all layers, what is saved for backward, the peak, and the maximum batch
/// where a sweep has found it.
std::vector<PairFigure> layer_figures(const LayerRequest& request, const LayerRange& layers,
                                      int64_t num_layers);

/// What changes from the first trace of the request to the second: "peak", "-1.20 GiB". Times only
/// of two predictions, which have no noise.
std::vector<std::pair<std::string, std::string>> switch_effect(const LayerRequest& request,
                                                               int64_t num_layers);

}  // namespace profiler
