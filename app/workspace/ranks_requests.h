#pragma once

#include "app/workspace/view_slot.h"
#include "profiler/analysis/rank_run.h"
#include "profiler/view/rank_tables.h"
#include "profiler/view/ranks_view.h"

#include <memory>
#include <optional>
#include <vector>

/// From the state of the workspace to the views of the Ranks panel.
namespace app {

struct SlotInputs;

/// What the Ranks panel shows.
struct RanksQuery {
    int width_px = 0;  // of its plot; 0: not drawn yet, so nothing is built

    friend bool operator==(const RanksQuery&, const RanksQuery&) = default;
};

/// The ranks of one run that are open, and what is computed once for all of them.
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

std::optional<Wanted<std::vector<DocumentPtr>>> wanted_rank_run(const SlotInputs& inputs);
models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents);

std::optional<Wanted<profiler::RanksRequest>> wanted_ranks(const SlotInputs& inputs);

}  // namespace app
