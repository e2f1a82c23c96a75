#pragma once

#include "profiler/view/planner_pins.h"

#include <vector>

namespace app {

/// A compact table of the pinned plans with their figures; each row can be removed.
void draw_pins(std::vector<profiler::PlannerPin>& pins);

}  // namespace app
