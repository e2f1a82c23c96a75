#pragma once

#include "profiler/tables/data_table.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"

#include <cstdint>
#include <string>
#include <vector>

/// What lives at one moment, the largest block first.
namespace profiler {

struct LiveBlocksRequest {
    Steps steps;
    std::shared_ptr<const Alignment> alignment;  // of A and B
    std::size_t shown = 0;
    bool difference = false;  // adds what trace 1 holds of each block at that moment
    double moment_ns = 0;     // on the shared axis

    friend bool operator==(const LiveBlocksRequest&, const LiveBlocksRequest&) = default;
};

struct LiveBlocksView {
    static constexpr std::size_t kMostRows = 1000;

    struct Row {
        Id<Allocation> allocation;
        std::string name;
        std::string module_path;
        Category category = Category::kUnknown;
        int64_t size_bytes = 0;
        std::string size_text;   // "64.0 MiB"
        std::string other_text;  // what the other trace holds of it: "64.0 MiB", "–"
        bool gone = false;       // the other trace holds nothing of it
    };
    std::string moment_text;  // "1.20 s, backward of step 2"
    std::string total_text;   // "24.5 GiB in 2,345 blocks"
    std::string rest_text;    // "and 1,345 smaller blocks, 12.0 MiB"; empty if all are listed
    std::string gone_text;    // "B does not hold 1.20 GiB of it"; empty without a difference
    std::vector<Row> rows;
};

LiveBlocksView build_live_blocks_view(const LiveBlocksRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

DataTable live_blocks_data(const LiveBlocksView& view);

}  // namespace profiler
