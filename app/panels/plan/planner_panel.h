#pragma once

#include "app/panels/parts/panel_context.h"
#include "profiler/view/plan/planner_view.h"

#include <memory>
#include <string>
#include <vector>

namespace app {

struct PlannerState {
    std::string focus;         // the recipe whose gauge is shown; empty: the first
    std::string focus_before;  // is shown until `focus` is planned
    /// The last plan that succeeded. It stays while the next one is made.
    std::shared_ptr<const PlannerResult> shown;
    std::shared_ptr<const PlannerResult> taken;  // the newest, also if it failed
    std::vector<profiler::PlannerPin> pins;      // at most profiler::kMostPins
};

/// Memory and throughput of recipes against the batch on a GPU, planned anew as the user changes
/// the step. Needs no trace.
PanelEvents draw_planner_panel(const PanelContext& context, PlannerState& state);

}  // namespace app
