#pragma once

#include "profiler/view/compare_view.h"

#include <imgui.h>

#include <string>
#include <string_view>

/// What the charts of the Compare panel share.
namespace app {

/// Title and subtitle, shortened to the width of the chart.
void chart_title(std::string_view title, std::string_view subtitle, float width);

/// What a title leaves of the chart's size.
ImVec2 below_title(ImVec2 size);

/// Says why a chart has nothing to draw, and what to run.
void chart_note(const char* id, std::string_view note, ImVec2 size);

/// Why nothing is drawn of a maximum batch or of throughput.
std::string why_empty(const profiler::CompareView& view, const std::string& not_measured);

/// Whether the mouse is over this part of the current window.
bool mouse_in(ImVec2 upper_left, ImVec2 lower_right);

}  // namespace app
