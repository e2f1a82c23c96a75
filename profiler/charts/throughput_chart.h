#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/charts/figure.h"
#include "profiler/view/programs/compare_view.h"

#include <cstddef>
#include <string>
#include <vector>

/// Sequences per second over the batch size, a line per recipe: a panel of the comparison figure,
/// and the chart of the window's Compare panel.
///
///     sequences/s |         _-(o)   ring: the best batch
///                 |    __o--
///                 | o--     x       cross: did not fit
///                 |____________ batch size
namespace profiler {

/// What is drawn beside the sweeps.
struct ThroughputParts {
    bool plans = false;     // dashed, with a ring at each batch
    bool captured = false;  // a ring: a step that was captured by itself
};

/// A mark of the picture, and what is known about it.
struct ThroughputMark {
    Point at;
    double least = 0;  // of the distance at which the mouse is over it: a ring is hollow
    double most = 0;
    std::size_t column = 0;
    std::string text;  // "B=8: 12.4 sequences/s"

    bool covers(Point point) const;
};

/// Whether there is anything to draw.
bool has_throughput(const CompareView& view, const ThroughputParts& parts);

/// Up to this many recipes have bands, from their slowest to their fastest step; the bands of more
/// would hide each other, so they get bars.
inline constexpr std::size_t kMostBands = 3;

/// What the marks mean; before them marker and name of each curve if `with_names`.
std::vector<LegendEntry> throughput_legend(Canvas& canvas, const Theme& theme,
                                           const CompareView& view, const ThroughputParts& parts,
                                           bool with_names);

inline constexpr double kRateLabels = 44;   // left of the plot
inline constexpr double kBatchLabels = 38;  // below it

/// Draws the plot, its axes around it, and returns the marks, the ones drawn last at the end.
std::vector<ThroughputMark> draw_throughput(Canvas& canvas, const Theme& theme,
                                            const CompareView& view, const ThroughputParts& parts,
                                            const Rect& plot);

}  // namespace profiler
