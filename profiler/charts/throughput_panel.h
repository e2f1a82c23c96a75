#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/charts/comparison_layout.h"
#include "profiler/view/programs/compare_view.h"

namespace profiler {

/// Sequences per second over the batch size, a line per recipe. A band shows the spread of its
/// steps, a ring and a label its best batch, a cross the batch that did not fit.
void draw_throughput_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                           const ComparisonLayout& layout);

}  // namespace profiler
