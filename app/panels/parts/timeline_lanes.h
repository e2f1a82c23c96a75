#pragma once

#include "app/panels/parts/timeline_drawing.h"
#include "app/widgets/text.h"
#include "app/workspace/workspace.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// Lanes on the pixels of a time axis: blocks of calls, kernels and copies, and the ribbon of
/// layers and modules. The Kernels panel has many lanes; the Memory timeline has some below the
/// memory of a trace, in the same plot.
namespace app {

// ---- calls, kernels and copies --------------------------------------------------------------

/// A row of blocks of A (trace 0) or B (trace 1), from `top` downwards.
struct CallStrip {
    const profiler::CallBlockRow* row = nullptr;
    std::size_t trace = 0;
    float top = 0;
    float height = 0;
};

/// A block under the mouse.
struct HoveredCall {
    std::size_t trace = 0;
    const profiler::CallBlock* block = nullptr;
};

/// Draws what the plot shows of the row. Returns the block under the mouse if `hovered`, that is if
/// the mouse is over the plot.
HoveredCall draw_call_strip(ImDrawList* draw, const PlotMap& map, const Selection& selection,
                            const CallStrip& strip, bool hovered);

/// What the colours of blocks mean, for a legend.
std::vector<NamedColor> colors_of(std::span<const profiler::CallClass> classes);

/// The tooltip of a block.
void draw_call_readout(const Workspace& workspace, const HoveredCall& hovered);

/// Selects the block, or no call if there is none or a merged one.
void click_call(const HoveredCall& hovered, PanelEvents& events);

// ---- layers and modules ---------------------------------------------------------------------

/// Null: not shown.
struct TimelineLanes {
    const profiler::RibbonTrace* ribbon = nullptr;
    bool with_parts = true;  // of the ribbon: the modules in layers, too
    const profiler::KernelsTrace* kernels = nullptr;
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
    HoveredCall call;

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
