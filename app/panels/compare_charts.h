#pragma once

#include "app/workspace/panel_events.h"
#include "profiler/view/compare_view.h"

#include <imgui.h>

/// The three charts of the Compare panel. Each fills `size`, including its title.
namespace app {

/// Bars stacked by category. A click on a segment selects its recipe and its category.
void draw_memory_chart(const profiler::CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events);
void draw_max_batch_chart(const profiler::CompareView& view, ImVec2 size, PanelEvents& events);
void draw_throughput_chart(const profiler::CompareView& view, ImVec2 size);

}  // namespace app
