#pragma once

#include "profiler/analysis/step/memory_curve.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <vector>

/// Memory over time for a picture that zooms without the trace: a browser page.
///
/// A `MomentList` is a step function: memory stays as it is from one moment to the next. Blocks
/// live from one moment to another, so that a stack of the blocks is as high as the curve. A trace
/// with few changes keeps each of them. A trace with more keeps the highest instants of fine bins
/// and its largest blocks; what is left out has no pixels until one zooms far in.
namespace profiler {

/// A block that is live at the moments [first, last).
struct BlockSpan {
    uint32_t first = 0;
    uint32_t last = 0;
    Id<Allocation> allocation;
};

struct MomentList {
    std::vector<CurveBin> moments;  // times never decrease; the first is where the curve starts
    std::vector<BlockSpan> blocks;  // in the order of allocation
    bool is_exact = true;           // each change is a moment
    std::size_t hidden_blocks = 0;  // visible at some moment, but left out of `blocks`
};

struct MomentLimits {
    std::size_t max_moments = std::size_t{1} << 19;
    std::size_t max_blocks = 400'000;
    /// A picture visits every live block for every pixel column.
    std::size_t max_live_blocks = 8192;
};

/// `curve` is MemoryCurve(trace). O(changes), and a sort of the blocks where they are too many.
MomentList build_moments(const Trace& trace, const MemoryCurve& curve,
                         const MomentLimits& limits = {});

}  // namespace profiler
