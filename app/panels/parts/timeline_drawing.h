#pragma once

#include "app/widgets/plot.h"
#include "app/workspace/panel_events.h"

#include <imgui.h>

#include <optional>

/// The inside of a timeline plot, drawn directly into ImPlot's draw list: steps of one column per
/// pixel at whole pixels. ImPlot's own polygons would blur them.
namespace app {

struct PanelContext;

void draw_stack(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                std::optional<profiler::Category> picked);
void draw_reserved_line(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace);
void draw_difference(ImDrawList* draw, const PlotMap& map, const std::vector<double>& edge_ns,
                     const std::vector<double>& difference_bytes);
/// The names of the phases in a strip of phase_strip_height() from `top` downwards.
void draw_phase_strip(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                      float top);
/// Shades the phases and writes their names along the upper edge.
void draw_phases(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                 bool with_names);
/// The peak, the limit of the memory and where it ran out; without texts, only the two points.
void draw_markers(ImDrawList* draw, const PlotMap& map, const profiler::TimelineTrace& trace,
                  bool with_texts = true);
void draw_range(ImDrawList* draw, const PlotMap& map, const profiler::TimeRange& range);
void draw_tensor_lifetime(ImDrawList* draw, const PlotMap& map, const SelectedTensor& tensor);
void draw_call(ImDrawList* draw, const PlotMap& map, const SelectedCall& call);
/// The selected moment: a line with a handle at its foot.
void draw_moment(ImDrawList* draw, const PlotMap& map, double time_ns);
/// The handle alone, pale: nothing is selected, and panels show this moment.
void draw_moment_handle(ImDrawList* draw, const PlotMap& map, double time_ns, ImU32 color);
void draw_cursor(ImDrawList* draw, const PlotMap& map, double time_ns);

/// Sets up the time axis, which is the same in all panels: pan and zoom change `start_ns` and
/// `end_ns` within `limits`. Between SetupAxes and SetupFinish; the axis is `width_px` long.
void setup_time_axis(const profiler::TimeRange& limits, double& start_ns, double& end_ns,
                     float width_px);

/// The labels of the time axis, below a plot whose contents scroll. `map` is that of the plot.
void draw_time_labels(const PlotMap& map, double start_ns, double end_ns);

/// The switch between aligned phases and both traces on their own clocks.
void align_button(const TimeWindow& window, PanelEvents& events);

/// Asks for another visible range, or for another width of the Memory timeline's plots. Both keep
/// what `events` asks for already; `window` is the window as last applied.
void set_range(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events);
void set_width(float width, const TimeWindow& window, PanelEvents& events);

/// Height of the strip of phase names.
float phase_strip_height();

// ---- mouse and keys, the same in all panels with a time axis --------------------------------

/// A range that is being selected with Shift + drag.
struct RangeDrag {
    std::optional<double> anchor_ns;  // where it began; empty: none
};

/// Begins a drag where Shift is held and the button goes down over the plot, selects up to the
/// mouse, and ends where the button is released, also outside of the plot. Inside a plot.
void drag_range(RangeDrag& drag, PanelEvents& events);

/// The axes of a plot whose lanes stand below each other and scroll: time, which the mouse pans and
/// zooms unless a range is being selected, and no labels. Between BeginPlot and the first item.
void setup_lane_axes(const profiler::TimeRange& limits, const RangeDrag& drag, double& start_ns,
                     double& end_ns, float width_px);

/// A click without a drag, Shift or a second click.
bool is_plain_click();

/// Shows a span of time with half of its length on both sides.
void zoom_to_span(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events);

/// W and S zoom around the cursor, A and D move, Z zooms to the selected range, Home shows the
/// moment of the peak, Escape lets go of the range. For the panel under the mouse, or else the one
/// with the focus.
void handle_time_keys(const PanelContext& context, PanelEvents& events);

}  // namespace app
