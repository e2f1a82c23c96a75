#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/charts/comparison_layout.h"
#include "profiler/view/compare_view.h"

namespace profiler {

/// Sequences per second against batch: a line per recipe, the spread of its steps as a band, its
/// best batch ringed and labelled, batches that did not fit crossed.
void draw_throughput_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                           const ComparisonLayout& layout);

}  // namespace profiler
