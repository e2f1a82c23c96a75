#pragma once

#include "profiler/planner/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Recipe search: the fastest recipe within a GPU's memory, layer by layer (docs/planner.md).
namespace profiler {

struct AutoRequest {
    PlanRequest plan;  // its workloads' own recipe is the one that others are compared with
    /// What a layer may have; empty: every choice of its ops, and checkpointing.
    std::vector<models::Recipe> candidates;
};

/// A recipe that no other one beats in both.
///     with a batch       peak and time
///     without one        largest batch and throughput
struct FrontierPoint {
    std::string recipe;  // canonical text
    int64_t batch_size = 0;
    int64_t step_time_ns = 0;
    double sequences_per_s = 0;        // of all GPUs together
    int64_t peak_allocated_bytes = 0;  // simulated, or the search's own estimate
    bool is_simulated = false;         // traced itself, through the allocator
    std::optional<bool> fits;          // of the simulated ones
    bool is_chosen = false;
};

struct AutoRow {
    PlanRow row;           // of the recipe that was chosen, or of the one that takes least
    std::string sentence;  // what it does beside the workload's own recipe
    std::string why;       // what the next faster one lacks
    std::vector<FrontierPoint> frontier;  // from little memory, or small batches, upwards
    int64_t num_candidates = 0;           // recipes of a layer
};

struct AutoPlan {
    std::vector<AutoRow> rows;  // workloads in their order, the GPUs of each in theirs
    bool has_ok_row() const;
};

/// Without a batch the recipe of the highest throughput at its best batch is chosen. What requests
/// point to and `data` must outlive the plan.
AutoPlan make_auto_plan(const AutoRequest& request, const PlannerData& data,
                        const MetaTraceSource& source, const PlanProgress& progress = {});

}  // namespace profiler
