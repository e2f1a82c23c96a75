#pragma once

#include "app/commands/console/report.h"
#include "app/programs/batch_search.h"
#include "models/config/parallel.h"
#include "profiler/planner/plan.h"
#include "profiler/view/kernels/bench_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The largest batches that runs found: of a program of the user's on each GPU, and of a built-in
/// model over GPUs, their number and strategies. Rows outlive the report on them.
namespace app {

/// "a100-40gb, SEQ=512: a batch of 8 fits (20.1 GiB)"
std::string about_try(const ProgramCase& of, const BatchRun& one);

/// Of `run --max`.
Report program_report(const std::vector<LargestBatch>& rows);

/// A step of a built-in model on a set of cards, spread by a strategy.
struct ParallelRow {
    models::Workload workload;
    const profiler::Gpu* gpu = nullptr;
    models::Parallel parallel;
    int64_t world_size = 1;
    std::string impossible;                     // why it cannot run at all; empty: it can
    std::string failure;                        // why the search ended; empty: it did not
    std::optional<LargestBatch> found;          // none: one of the two above says why
    std::optional<int64_t> closed_terms_bytes;  // the peak by the planner's formulas

    bool fits() const { return found && found->largest; }
};

/// Of `plan --parallel`: the largest batches. Its JSON is {"rows": [...], "least": index of the row
/// that fits on the least memory of cards, or null}.
Report parallel_plan_report(const std::vector<ParallelRow>& rows);
/// Of `sweep --parallel`: memory and throughput at every batch.
Report parallel_sweep_report(const std::vector<ParallelRow>& rows);
/// A group for each set of cards, with a bar for each strategy.
profiler::BarChart parallel_chart(const std::vector<ParallelRow>& rows);

}  // namespace app
