#pragma once

#include "app/panels/parts/panel_context.h"
#include "app/panels/parts/timeline_drawing.h"
#include "profiler/view/ranks/ranks_view.h"

#include <vector>

namespace app {

/// Where a lane stands: pixels below the top of the plot.
struct LanePlace {
    float top = 0;
    float memory_height = 0;
    float height = 0;  // with the collectives and the gap below
};

/// Lanes of equal height that fill `height`, within what can still be read.
std::vector<LanePlace> place_lanes(const profiler::RanksView& view, float height);

enum class RanksShown : uint8_t {
    kMemory,      // over time, by class
    kDifference,  // to the median rank, over time
    kPeaks,       // a table
    kTimes        // a table
};

struct RanksState {
    double start_ns = 0;  // visible window, which the plot changes
    double end_ns = 1;
    RangeDrag range;
    RanksShown shown = RanksShown::kMemory;
    PlotMap plot;  // of the last frame
};

/// The ranks of A's run above each other on the time axis of A: memory, difference to the median
/// rank, collectives joined across the ranks, and a table of peaks and times. A rank that is picked
/// becomes A or B.
PanelEvents draw_ranks_panel(const PanelContext& context, RanksState& state);

}  // namespace app
