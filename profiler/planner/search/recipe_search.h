#pragma once

#include "profiler/planner/plan_row.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/planner/search/layer_recipes.h"
#include "profiler/planner/search/layer_table.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

/// The search for one workload on one GPU. The dynamic program proposes per-layer recipes from
/// estimates; before one is chosen, its step is traced and its allocations are simulated.
namespace profiler {

/// What the dynamic program needs to know at one batch.
struct SearchBatch {
    int64_t batch_size = 0;
    LayerProblem problem;    // with estimates of the simulator's peaks
    double rest_ns = 0;      // time of a step outside its layers
    double own_step_ns = 0;  // step time with the workload's own recipe, even if it does not fit
};

/// A per-layer recipe after its step was traced and simulated.
struct SimulatedChoice {
    models::Workload workload;
    StepMemory peaks;
    bool fits = false;
    StepTime time;
    StepWork step;
};

class RecipeSearch {
public:
    /// `row` and `interpolation` are of the workload with its own recipe; start_row has not refused
    /// the row. All arguments must outlive the search.
    RecipeSearch(const PlanRow& row, const AutoRequest& request, const PlannerData& data,
                 const StepSource& source, BatchInterpolation& interpolation)
        : row_(row),
          request_(request),
          data_(data),
          source_(source),
          interpolation_(interpolation) {}

    /// Traces what a layer costs with each recipe. Errors: the GPU has no kernel model, it runs
    /// none of the recipes, or the source fails.
    models::Result<void> prepare();
    std::size_t num_candidates() const { return table_.recipes().size(); }

    /// Cached, because searches come back to the same batch.
    models::Result<SearchBatch> at_batch(int64_t batch_size);
    /// Traces and simulates a per-layer recipe once, then returns the cached result.
    models::Result<const SimulatedChoice*> simulate(const SearchBatch& batch,
                                                    const LayerChoice& choice);

    /// The index of the fastest choice of a frontier that fits according to the simulator; empty if
    /// none fits.
    models::Result<std::optional<std::size_t>> fastest_fitting(
        const SearchBatch& batch, const std::vector<LayerChoice>& choices);

    /// The largest batch at which some choice has an estimated peak within `limit_bytes`; 0 if
    /// there is no such batch.
    models::Result<int64_t> find_largest_batch(int64_t limit_bytes);

    /// The least capacity in which a choice that does not fit would run. This takes several
    /// simulations: call it only for choices that are shown.
    models::Result<int64_t> needed_bytes(const SimulatedChoice& choice) const;
    models::Workload workload_of(const LayerChoice& choice) const;
    double step_ns(const SearchBatch& batch, const LayerChoice& choice) const {
        return batch.rest_ns + static_cast<double>(choice.time_ns);
    }
    double sequences_per_s(int64_t batch_size, double step_ns) const;
    int64_t capacity_bytes() const { return limits_.capacity_bytes; }
    BatchInterpolation& interpolation() { return interpolation_; }
    const MemoryOptions& memory_options() const { return limits_.options; }

private:
    models::Result<LayerTable> trace_table(const std::vector<models::Recipe>& recipes);
    /// Adds what the search tries on top of each recipe that is useful at some batch.
    models::Result<void> add_on_top_of_best();
    models::Result<HostBound> host_bound_at(int64_t batch_size);

    const PlanRow& row_;
    const AutoRequest& request_;
    const PlannerData& data_;
    const StepSource& source_;
    BatchInterpolation& interpolation_;
    GpuLimits limits_;
    std::optional<TimeModel> model_;
    LayerTable table_;
    std::map<int64_t, SearchBatch> batches_;  // by batch
    std::deque<std::pair<models::Workload, SimulatedChoice>> simulated_;
};

}  // namespace profiler
