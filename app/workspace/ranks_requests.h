#pragma once

#include "app/workspace/view_slot.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/view/ranks/rank_tables.h"
#include "profiler/view/ranks/ranks_view.h"

#include <memory>
#include <optional>
#include <vector>

/// From the state of the workspace to the views of the Ranks panel.
namespace app {

struct WorkspaceState;

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

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state);
models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents);

std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state);

}  // namespace app
