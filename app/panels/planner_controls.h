#pragma once

#include "app/panels/panel_context.h"

namespace app {

/// The controls of the Planner. Changes `query`, or asks for another GPU through `events`.
void draw_planner_controls(const PanelContext& context, PlannerQuery& query, int64_t last_batch,
                           PanelEvents& events);

}  // namespace app
