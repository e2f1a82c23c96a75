#pragma once

#include "app/workspace/view_orders.h"

#include <optional>

/// From the state of the workspace to the plans and the view of the Recipe frontier.
namespace app {

/// The step of the Planner with every recipe. First those of A, B and open traces of the step, and
/// those between the two selected dots.
PlanQuestion frontier_wish(const WorkspaceState& state);

std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state);

}  // namespace app
