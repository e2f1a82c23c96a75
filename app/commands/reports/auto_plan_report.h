#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/view/plan/plan_view.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// `plan --auto` as sentences and tables for people, as JSON and as CSV; docs/commands.md lists the
/// keys. The text gives the answer first, and letters to recipes that are no preset. `view` holds
/// the rows of the chosen recipes.
namespace app {

void print_auto_plan(Output& output, const profiler::AutoPlan& plan,
                     const profiler::PlanRequest& request);
nlohmann::json auto_plan_json(const profiler::AutoPlan& plan, const profiler::PlanView& view);

/// One line for each point of a frontier; a row without a frontier has one line with its status and
/// reason.
std::string auto_plan_csv(const profiler::AutoPlan& plan, const profiler::PlanView& view);

}  // namespace app
