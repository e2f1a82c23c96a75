#pragma once

#include "app/commands/console/report.h"
#include "profiler/view/plan/plan_view.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// A plan as text, JSON and CSV.
namespace app {

void print_plan(Output& output, const profiler::PlanView& view);

/// {"setup", what all rows share, "rows": [{...}, ...]}.
nlohmann::json plan_json(const profiler::PlanView& view);

/// One line per row: every cell, then the notes in one cell with "; " between. The throughput curve
/// is left out.
std::string plan_csv(const profiler::PlanView& view);

/// For a plan without a possible row: every reason, with the rows that have it.
std::string no_row_sentence(const profiler::PlanView& view);

}  // namespace app
