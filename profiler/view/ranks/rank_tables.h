#pragma once

#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/tables/columns.h"

#include <string>
#include <vector>

/// The ranks of a run as tables, a row for each: in the Ranks panel and in `info FOLDER`.
namespace profiler {

/// What a user would quote: the rank that needs the most memory, and the rank that others wait for.
/// Empty for one rank.
std::string rank_headline(const RankRun& run);

/// Peaks by class, and what the ranks communicate.
TextTable rank_memory_table(const RankRun& run);
/// "the last step" if all ranks end with it; else "step 2, the last one that all ranks have whole",
/// or "all ranks with a whole step" if some ranks have no whole step.
std::string name_of_shared_step(const RankRun& run);
/// What the GPUs do in the shared step. Without rows if no rank says it.
TextTable rank_time_table(const RankRun& run);
/// Both, in bytes and nanoseconds.
DataTable ranks_data(const RankRun& run);

/// The columns of ranks_data that are not bytes of a class.
std::vector<TableColumn<RankSummary>> rank_columns();

}  // namespace profiler
