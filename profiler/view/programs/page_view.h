#pragma once

#include "profiler/analysis/step/memory_curve.h"
#include "profiler/trace/trace.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/ledger_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What the browser page shows of one or two traces. The page zooms, sorts and filters by itself,
/// so this is everything that it may need, in levels of detail.
namespace profiler {

// Memory over time for a picture that zooms without the trace: a browser page.
//
// A `MomentList` is a step function: memory stays as it is from one moment to the next. Blocks
// live from one moment to another, so that a stack of the blocks is as high as the curve. A trace
// with few changes keeps each of them. A trace with more keeps the highest instants of fine bins
// and its largest blocks; what is left out has no pixels until one zooms far in.

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

struct PageRequest {
    Steps steps;
    std::array<std::string, 2> names;            // "original"
    std::shared_ptr<const Alignment> alignment;  // of A and B
    MomentLimits limits = {};                    // of both traces together, except for live blocks
};

/// What to say about a block. Blocks of the same tensor, module and op share it.
struct BlockLabel {
    std::string name;         // of the tensor; without a name, of the op; else the call site
    std::string module_path;  // empty if not known

    friend auto operator<=>(const BlockLabel&, const BlockLabel&) = default;
};

struct PageBlock {
    uint32_t first = 0;  // live at the moments [first, last)
    uint32_t last = 0;
    int64_t size_bytes = 0;  // as requested, which is what the curve counts
    Category category = Category::kUnknown;
    uint32_t label = 0;
};

struct PageTrace {
    MomentList moments;           // its times are the trace's own
    std::vector<double> time_ns;  // of each moment, on the shared axis
    std::vector<PageBlock> blocks;
    std::vector<BlockLabel> labels;
    std::vector<TimeMap::Point> time_map;  // shared and own time; empty: they are the same
};

struct PageView {
    TimelineView timeline;  // of the whole capture, in one column: names, phases, peaks, notes
    TimeRange range;        // of the shared axis
    std::vector<PageTrace> traces;
    LedgerView ledger;
    bool has_clock = true;  // false: times are places in the order of events
};

PageView build_page_view(const PageRequest& request);

}  // namespace profiler
