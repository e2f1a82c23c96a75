#pragma once

#include "app/panels/parts/timeline_drawing.h"
#include "app/widgets/text.h"
#include "app/workspace/workspace.h"

#include <cstddef>
#include <span>
#include <vector>

/// Calls, kernels and copies as blocks: in the Kernels panel and in the lane of the timeline.
namespace app {

/// A row of blocks of A (trace 0) or B (trace 1), from `top` downwards.
struct ActivityStrip {
    const profiler::ActivityBlockRow* row = nullptr;
    std::size_t trace = 0;
    float top = 0;
    float height = 0;
};

/// A block under the mouse.
struct HoveredActivity {
    std::size_t trace = 0;
    const profiler::ActivityBlock* block = nullptr;
};

/// Draws what the plot shows of the row. Returns the block under the mouse if `hovered`, that is if
/// the mouse is over the plot.
HoveredActivity draw_activity_strip(ImDrawList* draw, const PlotMap& map,
                                    const Selection& selection, const ActivityStrip& strip,
                                    bool hovered);

/// What the colours of blocks mean, for a legend.
std::vector<NamedColor> colors_of(std::span<const profiler::ActivityClass> classes);

/// The tooltip of a block.
void draw_activity_readout(const Workspace& workspace, const HoveredActivity& hovered);

/// Selects the block, or no call if there is none or a merged one.
void click_activity(const HoveredActivity& hovered, PanelEvents& events);

}  // namespace app
