#pragma once

#include "profiler/view/memory/page_moments.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/ledger_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What the browser page shows of one or two traces. The page zooms, sorts and filters by itself,
/// so this is everything that it may need, in levels of detail.
namespace profiler {

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
