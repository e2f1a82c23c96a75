#pragma once

#include "app/panels/parts/panel_context.h"

namespace app {

struct CompareState {
    bool shows_pair = false;  // memory of A and B at four moments, in place of all recipes' peaks
};

/// Recipes side by side: memory at the peak, maximum batch and throughput, with a table below and
/// one sentence that sums up the comparison. Shows the welcome page when nothing is open.
PanelEvents draw_compare_panel(const PanelContext& context, CompareState& state);

}  // namespace app
