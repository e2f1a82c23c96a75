#pragma once

#include "profiler/planner/step/step_work.h"

#include <cstdint>
#include <string>
#include <vector>

/// Several GPUs that share a step: each computes its own batch; gradients are averaged. ZeRO
/// spreads optimizer state (stage 1), gradients (2) and parameters (3) over them.
namespace profiler {

struct DataParallel {
    int64_t num_gpus = 1;
    int zero_stage = 0;  // 0 to 3

    bool is_sharded(const StepAllocation& allocation) const;
    /// What one GPU holds of an allocation.
    int64_t size_on_one(const StepAllocation& allocation) const;
};

/// Memory that data parallelism takes beside the step, by name.
struct MemoryTerm {
    std::string name;  // "ddp_buckets_bytes"
    int64_t size_bytes = 0;
    bool is_tensor = true;  // through the caching allocator; else beside it
};

/// `has_buckets`: torch's DDP with gradients copied into buckets. `nccl_bytes`: of a communicator.
std::vector<MemoryTerm> data_parallel_terms(const DataParallel& parallel,
                                            const Parameters& parameters, bool has_buckets,
                                            int64_t nccl_bytes);

/// Bytes that a GPU sends for one step over a ring of n: 2(n-1)/n of the gradients, and half as
/// much again when parameters are gathered (ZeRO 3).
double communicated_bytes(const DataParallel& parallel, int64_t gradient_bytes);

}  // namespace profiler
