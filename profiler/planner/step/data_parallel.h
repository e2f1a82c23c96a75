#pragma once

#include "profiler/planner/step/step_work.h"

#include <cstdint>
#include <string>
#include <vector>

/// Data parallelism: each GPU computes its own batch, and gradients are averaged. ZeRO also spreads
/// optimizer state (stage 1), gradients (stage 2) and parameters (stage 3) over the GPUs.
namespace profiler {

struct DataParallel {
    int64_t num_gpus = 1;
    int zero_stage = 0;  // 0 to 3

    bool is_sharded(const StepAllocation& allocation) const;
    /// The bytes of an allocation that one GPU holds.
    int64_t size_on_one(const StepAllocation& allocation) const;

    friend bool operator==(const DataParallel&, const DataParallel&) = default;
};

/// Memory that data parallelism adds to a step.
struct MemoryTerm {
    std::string name;  // "ddp_buckets_bytes"
    int64_t size_bytes = 0;
    bool is_tensor = true;  // true: allocated through the caching allocator
};

/// `has_buckets`: DDP copies gradients into buckets. `nccl_bytes`: memory of a communicator.
std::vector<MemoryTerm> data_parallel_terms(const DataParallel& parallel,
                                            const Parameters& parameters, bool has_buckets,
                                            int64_t nccl_bytes);

/// Bytes that a GPU sends per step over a ring of n GPUs: 2(n-1)/n of the gradients, and with ZeRO
/// 3 half as much again to gather parameters.
double communicated_bytes(const DataParallel& parallel, int64_t gradient_bytes);

}  // namespace profiler
