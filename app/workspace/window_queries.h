#pragma once

#include "app/workspace/blocks_query.h"
#include "profiler/view/flame_view.h"
#include "profiler/view/ledger_view.h"

#include <string>

/// What the user asks of the panels that may have several windows: one query for each window.
namespace app {

/// What the ledger shows and in which order.
struct LedgerQuery {
    std::string filter;
    profiler::LedgerColumn sort_by = profiler::LedgerColumn::kSize;
    bool descending = true;
    bool only_differences = false;
    bool compare = true;  // show B beside A, when there is a B
    profiler::LedgerGrouping grouping = profiler::LedgerGrouping::kTensors;

    friend bool operator==(const LedgerQuery&, const LedgerQuery&) = default;
};

/// What the Flame graph shows.
struct FlameQuery {
    profiler::FlameMode mode = profiler::FlameMode::kA;
    bool combine_layers = false;
    std::string search;
    bool is_drawn = false;  // the panel has been drawn; before that its view is not built

    friend bool operator==(const FlameQuery&, const FlameQuery&) = default;
};

/// The queries of the windows with one number.
struct WindowQueries {
    LedgerQuery ledger;
    FlameQuery flame;
    BlocksQuery blocks;
};

}  // namespace app
