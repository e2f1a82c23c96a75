#pragma once

#include "app/panels/panel_context.h"

#include <string>

/// Every tensor saved for backward: which op saves it, its shape and its bytes, beside the figure
/// of the closed form and the same tensor in B. The table sorts, filters and copies.
namespace app {

struct LedgerState {
    std::string filter;         // as typed
    bool focus_filter = false;  // set by Ctrl+F
};

PanelEvents draw_ledger_panel(const PanelContext& context, LedgerState& state);

}  // namespace app
