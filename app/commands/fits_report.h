#pragma once

#include "app/commands/console/terminal.h"
#include "app/commands/worker/batch_search.h"
#include "models/config/parallel.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/view/bench_view.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What fits where: the largest batch of a model over cards, numbers of them and strategies.
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
    /// What the step of all GPUs trains at the largest batch.
    int64_t sequences_per_step() const;
};

void print_fits(Output& output, const std::vector<FitRow>& rows);
/// {"rows": [...], "least": index of the row that fits on the least memory of cards, or null}
nlohmann::json fits_json(const std::vector<FitRow>& rows);
std::string fits_csv(const std::vector<FitRow>& rows);
/// A group for each set of cards, with a bar for each strategy.
profiler::BarChart fits_chart(const std::vector<FitRow>& rows);

}  // namespace app
