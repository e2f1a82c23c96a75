#pragma once

#include "app/workspace/panel_events.h"

#include <string>
#include <string_view>

/// Every tensor that is saved for backward: who keeps it, shape, bytes; the closed form's figure
/// beside it, and the same row of B. Sorts, filters and copies.
namespace app {

struct LedgerState {
    bool open = true;
    std::string filter;         // as typed
    bool focus_filter = false;  // set by Ctrl+F
};

struct LedgerInput {
    const profiler::LedgerView* view = nullptr;  // null: nothing to show yet
    std::string_view error;                      // why there is none; empty while it is built
    const Selection* selection = nullptr;
    LedgerQuery query;  // as last applied
};

PanelEvents draw_ledger_panel(const LedgerInput& input, LedgerState& state);

}  // namespace app
