#pragma once

#include "app/panels/parts/activity_drawing.h"
#include "app/panels/parts/timeline_drawing.h"

#include <cstddef>
#include <optional>

/// What stands below the memory of a trace in the Memory timeline, in the same plot and so on the
/// same pixels: the ribbon of layers and modules, and a lane of kernels. The Kernels panel has the
/// ribbon above its lanes.
namespace app {

/// Null: not shown.
struct TimelineLanes {
    const profiler::RibbonTrace* ribbon = nullptr;
    bool with_parts = true;  // of the ribbon: the modules in layers, too
    const profiler::ActivityViewTrace* kernels = nullptr;
};

/// A row of layers or of the modules in them, ribbon_height() high from `top` downwards. Returns
/// the module under the mouse.
const profiler::RibbonBlock* draw_ribbon(ImDrawList* draw, const PlotMap& map,
                                         const Selection& selection,
                                         const profiler::RibbonTrace& ribbon,
                                         profiler::ModuleLevel level, float top);
float ribbon_height();
/// "layers", "parts"
const char* name_of_ribbon(profiler::ModuleLevel level);

/// Height of all lanes, with the gap above them.
float lanes_height(const TimelineLanes& lanes);

/// What the mouse is over; `top` and `bottom` are those of all lanes.
struct LaneHit {
    float top = 0;
    float bottom = 0;
    const profiler::RibbonBlock* module = nullptr;
    profiler::ModuleLevel level = profiler::ModuleLevel::kOuter;
    HoveredActivity activity;

    bool holds(float y) const { return y >= top && y < bottom; }
    /// Begin and end of the block under the mouse; empty if there is none.
    std::optional<profiler::TimeRange> span() const;
};

/// Draws the lanes at the foot of the plot. `trace` is 0 for A and 1 for B.
LaneHit draw_timeline_lanes(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                            const TimelineLanes& lanes, std::size_t trace);

/// Names of the lanes, right-aligned left of the plot.
void draw_lane_names(ImDrawList* draw, const PlotMap& map, const TimelineLanes& lanes);

/// The tooltip of what is under the mouse.
void draw_lane_readout(const Workspace& workspace, std::size_t trace, const LaneHit& hit);

/// A click: selects the call, or the layer and the time of the module; a second one lets go.
void click_lane(const Workspace& workspace, std::size_t trace, const LaneHit& hit,
                PanelEvents& events);

}  // namespace app
