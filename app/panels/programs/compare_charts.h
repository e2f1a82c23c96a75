#pragma once

#include "app/workspace/panel_events.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/pair_view.h"

#include <imgui.h>

/// The charts of the Compare panel. Each fills `size`, including its title.
namespace app {

/// Bars stacked by category. A click on a segment selects its recipe and its category.
void draw_memory_chart(const profiler::CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events);
/// The same of A and B at four moments.
void draw_pair_chart(const profiler::PairView& view, const Selection& selection, ImVec2 size,
                     PanelEvents& events);
void draw_max_batch_chart(const profiler::CompareView& view, ImVec2 size, PanelEvents& events);
/// Says above the plot what the marks mean; names the curves too if `with_names`.
void draw_throughput_chart(const profiler::CompareView& view, ImVec2 size, bool with_names);

/// Memory and maximum batch of many recipes: a row each, with the marker of its curve and its whole
/// name at the left. Scrolls if the rows are higher than the chart. A click selects a recipe.
void draw_compare_rows(const profiler::CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events);

}  // namespace app
