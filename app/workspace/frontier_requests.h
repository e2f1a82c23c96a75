#pragma once

#include "app/workspace/frontier_plans.h"
#include "app/workspace/view_requests.h"

#include <optional>

/// From the state of the workspace to the plans and the view of the Recipe frontier.
namespace app {

/// The step of the Planner with every recipe. First those of A, B and open traces of the step, and
/// those between the two selected dots.
FrontierWish frontier_wish(const SlotInputs& inputs);

std::optional<Wanted<profiler::FrontierRequest>> wanted_frontier(const SlotInputs& inputs);

}  // namespace app
