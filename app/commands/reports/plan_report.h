#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/planner/plan.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// A plan as a table for people, as JSON and as CSV; docs/commands.md lists the keys.
namespace app {

void print_plan(Output& output, const profiler::Plan& plan);
nlohmann::json plan_json(const profiler::Plan& plan, const profiler::PlanRequest& request);

/// Of plan_json: one line a row, its numbers, those of its groups and of the request too, without
/// the curve; notes in one cell with "; " between.
std::string plan_csv(const nlohmann::json& document);

}  // namespace app
