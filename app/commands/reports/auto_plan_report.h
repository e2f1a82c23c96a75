#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/planner/search/auto_plan.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// `plan --auto` as sentences and tables for people, as JSON and as CSV; docs/commands.md lists the
/// keys.
namespace app {

void print_auto_plan(Output& output, const profiler::AutoPlan& plan);
nlohmann::json auto_plan_json(const profiler::AutoPlan& plan, const profiler::PlanRequest& request);

/// One line for each point of a frontier; for a row without one its status and reason.
std::string auto_plan_csv(const profiler::AutoPlan& plan);

}  // namespace app
