#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/ranks/rank_run.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// The ranks of a run as a table: what each holds at its peak.
namespace app {

void print_ranks(Output& output, const profiler::RankRun& run);
/// {world_size, shared_step, imbalance, clocks, left_out, rows: [{rank, file, device,
/// peak_allocated_bytes, ...}]}; `left_out` are files of ranks that could not be read.
nlohmann::json ranks_json(const profiler::RankRun& run,
                          const std::vector<std::string>& left_out = {});

}  // namespace app
