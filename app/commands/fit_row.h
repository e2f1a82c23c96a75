#pragma once

#include "app/commands/worker/batch_search.h"
#include "models/config/parallel.h"
#include "profiler/planner/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A step of a built-in model on a set of cards, spread by a strategy, and its largest batch.
namespace app {

struct FitRow {
    models::Workload workload;
    const profiler::Gpu* gpu = nullptr;
    models::Parallel parallel;
    int64_t world_size = 1;
    std::string impossible;                     // why it cannot run at all; empty: it can
    std::string failure;                        // why the search ended; empty: it did not
    std::optional<LargestBatch> found;          // none: one of the two above says why
    std::optional<int64_t> closed_terms_bytes;  // the peak by the planner's formulas

    bool fits() const { return found && found->largest; }
    std::string gpus() const;  // "8 x rtx4090"
    /// What the step of all GPUs trains at this batch of one GPU.
    int64_t sequences_per_step(const BatchTry& at) const;
    /// Of all GPUs together; none: the time of the step is not known.
    std::optional<double> sequences_per_s(const BatchTry& at) const;
};

/// A strategy on a number of GPUs.
using Spread = std::pair<models::Parallel, int64_t>;

/// Every strategy of a list on every number of a list, but "none" on one GPU alone, and only it.
models::Result<std::vector<Spread>> parse_spreads(const std::string& parallel,
                                                  const std::string& world_sizes);

/// A row for each workload, spread and GPU of the request.
std::vector<FitRow> make_fit_rows(const profiler::PlanRequest& request,
                                  const profiler::PlannerData& data,
                                  const std::vector<Spread>& spreads);

/// Finds the largest batch of each row by running it. Errors: no row is possible.
models::Result<void> search_fits(std::vector<FitRow>& rows,
                                 BatchOrder order = BatchOrder::kGuessed);

/// In place of a batch: "impossible", "failed", "does not fit".
std::string why_none(const FitRow& row);

}  // namespace app
