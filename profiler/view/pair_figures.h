#pragma once

#include "profiler/view/compare_view.h"
#include "profiler/view/layer_view.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace profiler {

/// What B allows and costs beside A, in two figures: the largest batch on the planned GPU, and the
/// time of a step. `a` and `b` are columns of the comparison; without `b` the figures are A's. What
/// is not known is left out.
std::vector<LayerFigure> pair_figures(const Comparison& comparison, const CompareView& view,
                                      std::size_t a, std::optional<std::size_t> b);

}  // namespace profiler
