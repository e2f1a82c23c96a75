#pragma once

#include "app/workspace/document.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/tables/columns.h"

#include <vector>

/// The ranks of the run that is open.
namespace app {

/// The open ranks of one run, and the values that are computed once for all of them.
struct RanksOfRun {
    std::vector<DocumentPtr> documents;  // in the order of the ranks
    profiler::RankRun run;
    profiler::TextTable peaks;
    profiler::TextTable times;  // without rows if none are known
};

/// A's run: A and the open traces in its folder that are of a run of the same size. Empty: A is no
/// rank, or has no step.
std::vector<DocumentPtr> ranks_beside(const DocumentPtr& a,
                                      const std::vector<DocumentPtr>& documents);

models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents);

}  // namespace app
