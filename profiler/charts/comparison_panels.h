#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/charts/comparison_layout.h"
#include "profiler/view/programs/compare_view.h"

/// The panels of the comparison figure whose rows are recipes.
namespace profiler {

void draw_recipe_names(Canvas& canvas, const Theme& theme, const CompareView& view,
                       const ComparisonLayout& layout);
void draw_memory_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                       const ComparisonLayout& layout);
void draw_batch_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                      const ComparisonLayout& layout);
/// Throughput of the captured steps as bars, for comparisons without a sweep.
void draw_rate_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                     const ComparisonLayout& layout);

}  // namespace profiler
