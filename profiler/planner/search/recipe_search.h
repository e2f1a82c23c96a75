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

/// The search for one workload on one GPU: mixes of recipes from the dynamic program, each checked
/// by tracing and simulating the step itself before it is believed.
namespace profiler {

/// One batch: the program to solve, with what lies outside the layers.
struct BatchScene {
    int64_t batch_size = 0;
    LayerProblem problem;    // its peaks are estimates of what the simulator will say
    double rest_ns = 0;      // of a step beside its layers
    double own_step_ns = 0;  // of the workload's own recipe, whether it fits or not
};

/// A mix as the step that it is.
struct SimulatedChoice {
    models::Workload workload;
    StepMemory peaks;
    bool fits = false;
    StepTime time;
    StepWork step;
};

class RecipeSearch {
public:
    /// `row`: of the workload's own recipe on the GPU, left ok by start_row. `family`: that
    /// workload's. All must outlive the search.
    RecipeSearch(const PlanRow& row, const AutoRequest& request, const PlannerData& data,
                 const MetaTraceSource& source, BatchInterpolation& interpolation)
        : row_(row),
          request_(request),
          data_(data),
          source_(source),
          interpolation_(interpolation) {}

    /// Traces what a layer costs with each recipe. Errors: no kernel model of the GPU, no recipe
    /// that it runs, what the source says.
    models::Result<void> prepare();
    std::size_t num_candidates() const { return table_.recipes().size(); }

    /// Kept, since searches come back to a batch.
    models::Result<BatchScene> look_at(int64_t batch_size);
    /// Traced and simulated once, then kept.
    models::Result<const SimulatedChoice*> simulate(const BatchScene& scene,
                                                    const LayerChoice& choice);

    /// The place of the fastest of a frontier's mixes that fits, by the simulator; none: none does.
    models::Result<std::optional<std::size_t>> fastest_fitting(
        const BatchScene& scene, const std::vector<LayerChoice>& choices);

    /// The largest batch at which a mix with an estimate of at most `limit_bytes` exists; 0: none.
    models::Result<int64_t> find_largest_batch(int64_t limit_bytes);

    /// The least capacity that a mix which does not fit runs in: simulations, so only where it is
    /// said.
    models::Result<int64_t> needed_bytes(const SimulatedChoice& choice) const;
    models::Workload workload_of(const LayerChoice& choice) const;
    double step_ns(const BatchScene& scene, const LayerChoice& choice) const {
        return scene.rest_ns + static_cast<double>(choice.time_ns);
    }
    double sequences_per_s(int64_t batch_size, double step_ns) const;
    int64_t capacity_bytes() const { return limits_.capacity_bytes; }
    BatchInterpolation& interpolation() { return interpolation_; }
    const MemoryOptions& memory_options() const { return limits_.options; }

private:
    models::Result<LayerTable> trace_table(const std::vector<models::Recipe>& recipes);
    /// Per-layer checkpointing around each recipe that is worth it at some batch.
    models::Result<void> add_checkpointed();
    models::Result<HostBound> host_bound_at(int64_t batch_size);

    const PlanRow& row_;
    const AutoRequest& request_;
    const PlannerData& data_;
    const MetaTraceSource& source_;
    BatchInterpolation& interpolation_;
    GpuLimits limits_;
    std::optional<TimeModel> model_;
    LayerTable table_;
    std::map<int64_t, BatchScene> scenes_;  // by batch
    std::deque<std::pair<models::Workload, SimulatedChoice>> simulated_;
};

}  // namespace profiler
