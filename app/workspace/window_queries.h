#pragma once

#include "app/workspace/blocks_query.h"
#include "app/workspace/selection.h"
#include "profiler/view/flame_view.h"
#include "profiler/view/ledger_view.h"

#include <map>
#include <optional>
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

/// What the Inspector describes.
struct InspectorQuery {
    /// As it was when the user pinned it; empty: what is selected now. It holds until A, B or the
    /// alignment of their times changes.
    std::optional<Selection> pinned;
};

/// The queries of the windows with one number.
struct WindowQueries {
    LedgerQuery ledger;
    FlameQuery flame;
    BlocksQuery blocks;
    InspectorQuery inspector;
};

/// What of a query is worth keeping, as text by the name of the field.
using QueryFields = std::map<std::string, std::string>;
QueryFields to_fields(const LedgerQuery& query);
QueryFields to_fields(const FlameQuery& query);
QueryFields to_fields(const BlocksQuery& query);

/// The opposite. A field that is missing or cannot be read keeps its value.
void read_fields(const QueryFields& fields, LedgerQuery& query);
void read_fields(const QueryFields& fields, FlameQuery& query);
void read_fields(const QueryFields& fields, BlocksQuery& query);

}  // namespace app
