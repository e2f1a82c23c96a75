#pragma once

#include "profiler/analysis/rank_run.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/data_table.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// The ranks of a run as tables, a row for each: in the Ranks panel and in `info FOLDER`.
namespace profiler {

/// What a user would quote: which rank needs the most memory, and for which one the others wait.
/// Empty for one rank.
std::string rank_headline(const RankRun& run);

/// Peaks by class, and what the ranks communicate.
TextTable rank_memory_table(const RankRun& run);
/// "the last step", or if some rank has other ones after it, or not to its end, "step 2, the last
/// one that all ranks have whole", "all ranks with a whole step" where some have none.
std::string name_of_shared_step(const RankRun& run);
/// What the GPUs do in the shared step. Without rows if no rank says it.
TextTable rank_time_table(const RankRun& run);
/// Both, in bytes and nanoseconds.
DataTable ranks_data(const RankRun& run);

/// A column of rank_time_table.
struct RankTimeColumn {
    const char* title;
    const char* explanation;
    const char* key;  // in JSON and ranks_data: "compute_ns"
    std::optional<int64_t> (*value_of)(const RankSummary&);
};
std::span<const RankTimeColumn> rank_time_columns();

}  // namespace profiler
