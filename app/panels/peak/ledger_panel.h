#pragma once

#include "app/panels/parts/panel_context.h"
#include "profiler/view/peak/ledger_view.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

/// Every tensor saved for backward: which op saves it, its shape and its bytes, beside the figure
/// of the closed form and the same tensor in B. The table sorts, filters, groups and copies, and
/// marks what the selected op has made or saves.
namespace app {

struct LedgerState {
    std::string filter;             // as typed
    bool focus_filter = false;      // set by Ctrl+F
    bool scroll_to_tensor = false;  // set when the selected tensor was searched for
    std::set<std::string> open;     // LedgerGroup::id

    // What the table shows; made again when the view, the open groups or the selected op change.
    std::weak_ptr<const profiler::LedgerView> shown;
    std::vector<profiler::LedgerLine> lines;
    int64_t largest_bytes = 0;
    std::vector<profiler::LedgerColumn> columns;  // that were visible when the table was last drawn
    std::optional<PickedCall> marked_for;
    profiler::RowsOfOp marks;
};

PanelEvents draw_ledger_panel(const PanelContext& context, LedgerState& state);

}  // namespace app
