#pragma once

#include "app/widgets/imgui_canvas.h"
#include "app/workspace/panel_events.h"
#include "profiler/charts/bars.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/pair_view.h"

#include <imgui.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The charts of the Compare panel, and what they share.
namespace app {

// ---- the charts -----------------------------------------------------------------------------

// Each fills `size`, including its title.

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

// ---- what they share ------------------------------------------------------------------------

/// Title and subtitle, shortened to the width of the chart.
void chart_title(std::string_view title, std::string_view subtitle, float width);

/// What a title leaves of the chart's size.
ImVec2 below_title(ImVec2 size);

/// Says why a chart has nothing to draw, and what to run.
void chart_note(const char* id, std::string_view note, ImVec2 size);

/// Why nothing is drawn of a maximum batch or of throughput.
std::string why_empty(const profiler::CompareView& view, const std::string& not_measured);

/// "by category, pale: predicted"
std::string memory_subtitle(const profiler::CompareView& view);

/// "measured in 8.00 GiB, pale: predicted"
std::string max_batch_subtitle(const profiler::CompareView& view);

/// The largest batch of all columns, measured or predicted; 0: none is known.
int64_t largest_batch(const profiler::CompareView& view);

/// What a stacked bar is of.
struct StackOwner {
    std::string name;
    int64_t total_bytes = 0;
    std::string total_text;
    bool is_predicted = false;
    std::optional<size_t> column;  // of the comparison; a click makes it B
};
StackOwner owner_of(const profiler::CompareColumn& column);

/// A bar stacked by category; all but the selected category are pale. A click on a segment selects
/// its recipe and its category.
void draw_stacked_bar(ImGuiCanvas& canvas, const profiler::BarSlot& slot, const StackOwner& owner,
                      const std::vector<profiler::StackSegment>& stack, const Selection& selection,
                      PanelEvents& events);

/// What was measured and what is predicted of a recipe's largest batch, where the mouse is over
/// `area`; a click there makes the recipe B.
void read_batch_mouse(const ImGuiCanvas& canvas, const profiler::Rect& area,
                      const profiler::CompareColumn& column, PanelEvents& events);

}  // namespace app
