#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/view/plan/plan_view.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// A plan as a table for people, as JSON and as CSV; docs/commands.md lists the keys.
namespace app {

void print_plan(Output& output, const profiler::PlanView& view);
nlohmann::json plan_json(const profiler::PlanView& view);

/// One line per row: every cell, then the notes in one cell with "; " between. The throughput curve
/// is left out.
std::string plan_csv(const profiler::PlanView& view);

}  // namespace app
