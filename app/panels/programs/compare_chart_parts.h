#pragma once

#include "app/workspace/panel_events.h"
#include "profiler/view/programs/compare_view.h"

#include <imgui.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// "by category, pale: predicted"
std::string memory_subtitle(const profiler::CompareView& view);

/// "measured in 8.00 GiB, pale: predicted"
std::string max_batch_subtitle(const profiler::CompareView& view);

/// The largest batch of all columns, measured or predicted; 0: none is known.
int64_t largest_batch(const profiler::CompareView& view);

/// Whether a sweep says something about the maximum batch of this recipe.
bool is_swept(const profiler::CompareColumn& column);

/// What a stacked bar is of.
struct StackOwner {
    std::string name;
    int64_t total_bytes = 0;
    std::string total_text;
    bool is_predicted = false;
    std::optional<size_t> column;  // of the comparison; a click makes it B
};
StackOwner owner_of(const profiler::CompareColumn& column);

/// A part of a stacked bar; it is pale while another category is selected. A click selects its
/// recipe and its category. Returns whether it is pale.
bool draw_stack_segment(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                        const StackOwner& owner, const profiler::StackSegment& segment,
                        const Selection& selection, PanelEvents& events);

/// The bytes in the middle of a segment if they fit, on a plate that covers the pattern.
void draw_segment_text(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                       const profiler::StackSegment& segment);

/// A bar of a plot in pixels.
struct PlotBar {
    float left = 0;
    float right = 0;
    float center() const;
};
/// Around `x` of the current plot, `width` wide on its axis, but never very wide on the screen.
PlotBar plot_bar(double x, double width);
/// Pixel of a value on the vertical axis of the current plot.
float plot_y(double value);

/// Segments over each other, from 0 up.
void draw_stacked_bar(ImDrawList* draw, const PlotBar& bar, const StackOwner& owner,
                      const std::vector<profiler::StackSegment>& stack, const Selection& selection,
                      PanelEvents& events);

/// The value above a bar, and below it the change from the baseline. Labels that are wider than
/// `room` are left out.
void bar_label(ImDrawList* draw, const PlotBar& bar, double value, float room,
               std::string_view text, const profiler::Change& change);

/// What was measured and what is predicted of a recipe's maximum batch.
void max_batch_tooltip(const profiler::CompareColumn& column);

/// Whether the mouse is over this part of the current window.
bool mouse_in(ImVec2 upper_left, ImVec2 lower_right);

}  // namespace app
