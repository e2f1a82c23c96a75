#pragma once

#include "app/workspace/blocks_query.h"
#include "app/workspace/selection.h"
#include "profiler/view/flame_view.h"
#include "profiler/view/ledger_view.h"

#include <map>
#include <optional>
#include <string>

/// What the user asks to see in panels that may have several windows. Each window has its query.
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
    bool by_stack = false;  // the lines of code instead of the modules
    std::string search;
    bool is_drawn = false;  // the panel has been drawn; before that its view is not built

    friend bool operator==(const FlameQuery&, const FlameQuery&) = default;
};

/// What the Inspector describes.
struct InspectorQuery {
    /// The selection when the user pinned it; empty: what is selected now. A pin ends when A, B or
    /// the alignment of their times changes.
    std::optional<Selection> pinned;
};

/// The queries of the windows that have the same number: "Ledger 2", "Flame graph 2", ...
struct WindowQueries {
    LedgerQuery ledger;
    FlameQuery flame;
    BlocksQuery blocks;
    InspectorQuery inspector;
};

/// The fields of a query that are saved with the window: name and text.
using QueryFields = std::map<std::string, std::string>;
QueryFields to_fields(const LedgerQuery& query);
QueryFields to_fields(const FlameQuery& query);
QueryFields to_fields(const BlocksQuery& query);

/// Reads saved fields. A field that is missing or cannot be read keeps its value.
void read_fields(const QueryFields& fields, LedgerQuery& query);
void read_fields(const QueryFields& fields, FlameQuery& query);
void read_fields(const QueryFields& fields, BlocksQuery& query);

}  // namespace app
