#pragma once

#include "models/config/workload.h"
#include "profiler/planner/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Recipe search: the fastest recipe within a GPU's memory, layer by layer (docs/dev/planner.md).
namespace profiler {

struct AutoRequest {
    PlanRequest plan;  // the result is compared with the recipe of its workloads
    /// The recipes that a layer may have; empty: every choice of its ops, and checkpointing.
    std::vector<models::Recipe> candidates;
};

/// A recipe that no other recipe beats in both of two figures:
///     with a batch in the request     peak and time
///     without                         batch and throughput
struct FrontierPoint {
    std::string recipe;  // canonical text
    int64_t batch_size = 0;
    int64_t step_time_ns = 0;
    double sequences_per_s = 0;        // of all GPUs together
    int64_t peak_allocated_bytes = 0;  // from the simulator, or an estimate of the search
    bool is_simulated = false;         // this recipe was traced and its allocations simulated
    std::optional<bool> fits;          // known for simulated points
    bool is_chosen = false;
};

struct AutoRow {
    PlanRow row;           // of the chosen recipe; if none fits, of the recipe with the lowest peak
    std::string sentence;  // what the chosen recipe gains and costs against the workload's own
    std::string why;       // why no faster recipe was chosen
    std::vector<FrontierPoint> frontier;  // by rising memory, or by rising batch
    int64_t num_candidates = 0;           // recipes that a layer could have
};

struct AutoPlan {
    std::vector<AutoRow> rows;  // by workload, then by GPU, in the order of the request
    bool has_ok_row() const;
};

/// Without a batch in the request, chooses the recipe with the highest throughput at its best
/// batch.
AutoPlan make_auto_plan(const AutoRequest& request, const PlannerData& data,
                        const StepSource& source, const PlanProgress& progress = {});

// A recipe in a sentence, in the words of the switches' tables.

/// The techniques that `chosen` uses and `reference` does not, with their layers: "regenerated
/// masks in all layers; checkpointing in layer 3". "nothing" if there are none. Requires the same
/// model in both, and one recipe for all layers of `reference`.
std::string describe_techniques(const models::Workload& chosen, const models::Workload& reference);

}  // namespace profiler
