#pragma once

#include "app/panels/parts/timeline_drawing.h"
#include "profiler/view/ranks/ranks_view.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// The lanes of the Ranks panel: memory of each rank, and its collectives below.
namespace app {

/// Where a lane stands: pixels below the top of the plot.
struct LanePlace {
    float top = 0;
    float memory_height = 0;
    float height = 0;  // with the collectives and the gap below
};

/// Lanes of equal height that fill `height`, within what can still be read.
std::vector<LanePlace> place_lanes(const profiler::RanksView& view, float height);

struct RanksLook {
    std::span<const LanePlace> places;
    bool shows_difference = false;
    std::optional<profiler::Category> category;
    bool is_hovered = false;  // the mouse is over the plot
};

/// All lanes that can be seen, on a plot from 0 to its height. Returns the collective under the
/// mouse, or null.
const profiler::CollectiveSpan* draw_ranks(ImDrawList* draw, const PlotMap& map,
                                           const profiler::RanksView& view, const RanksLook& look);

/// A collective on all of its ranks, as one shape.
void draw_joined(ImDrawList* draw, const PlotMap& map, std::span<const LanePlace> places,
                 const profiler::JoinedSpan& joined);
/// `joined` is read_collective of the span, if that stands alone.
void draw_collective_tooltip(const profiler::CollectiveSpan& span,
                             const profiler::JoinedSpan& joined);

/// Swatches and names of the kinds that occur.
void draw_collective_legend(std::span<const profiler::CollectiveKind> kinds);

}  // namespace app
