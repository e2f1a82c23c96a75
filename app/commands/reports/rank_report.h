#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/rank_run.h"

#include <nlohmann/json_fwd.hpp>

/// The ranks of a run as a table: what each holds at its peak.
namespace app {

void print_ranks(Output& output, const profiler::RankRun& run);
/// {world_size, imbalance, rows: [{rank, file, device, peak_allocated_bytes, ...}]}
nlohmann::json ranks_json(const profiler::RankRun& run);

}  // namespace app
