#pragma once

#include "app/panels/parts/timeline_drawing.h"
#include "profiler/view/memory/blocks_view.h"

#include <cstdint>
#include <optional>

/// The inside of the Blocks panel's plot and its minimap.
namespace app {

/// What is drawn stronger or paler than the rest.
struct BlockHighlights {
    std::optional<profiler::Category> category;   // others are pale
    profiler::Id<profiler::Allocation> selected;  // of the trace that is drawn
    uint64_t family = 0;                          // its siblings are outlined
};

/// The block under the mouse, or the rectangle of merged ones.
struct HoveredBlock {
    const profiler::BlockShape* shape = nullptr;
    const profiler::MergedBlocks* merged = nullptr;

    profiler::Id<profiler::Allocation> allocation() const {
        if (shape) return shape->allocation;
        return merged ? merged->allocation : profiler::Id<profiler::Allocation>();
    }
};

ImU32 group_color(const profiler::BlockGroup& group);
/// Swatches and names of the groups in the window, as many as fit the line.
void draw_group_legend(const profiler::BlocksView& view, float width);

/// Draws all blocks; returns the one at `mouse`.
HoveredBlock draw_blocks(ImDrawList* draw, const PlotMap& map, const profiler::BlocksView& view,
                         const BlockHighlights& highlights, std::optional<ImVec2> mouse);

/// The whole capture, with the visible part framed. Returns the time that was clicked or dragged
/// to.
std::optional<double> draw_minimap(const profiler::BlocksView& view,
                                   const profiler::TimeRange& limits, const TimeWindow& window,
                                   double moment_ns, ImVec2 size);

}  // namespace app
