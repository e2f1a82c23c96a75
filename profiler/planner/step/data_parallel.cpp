#include "profiler/planner/step/data_parallel.h"

#include <algorithm>

namespace profiler {
namespace {

/// torch/nn/parallel/distributed.py: bucket_cap_mb.
constexpr int64_t kBucketBytes = int64_t{25} << 20;

}  // namespace

bool DataParallel::is_sharded(const StepAllocation& allocation) const {
    if (num_gpus == 1) return false;
    switch (allocation.category) {
        case Category::kOptimizerState:
            return zero_stage >= 1;
        case Category::kGradient:
            return zero_stage >= 2;
        case Category::kParameter:
            return zero_stage >= 3;
        default:
            // Each GPU updates its share of the parameters, so the temporaries are as small.
            return allocation.phase == PhaseKind::kOptimizer && zero_stage >= 1;
    }
}

int64_t DataParallel::size_on_one(const StepAllocation& allocation) const {
    if (!is_sharded(allocation)) return allocation.size_bytes;
    return (allocation.size_bytes + num_gpus - 1) / num_gpus;
}

std::vector<MemoryTerm> data_parallel_terms(const DataParallel& parallel,
                                            const Parameters& parameters, bool has_buckets,
                                            int64_t nccl_bytes) {
    std::vector<MemoryTerm> terms;
    if (parallel.num_gpus == 1) return terms;
    terms.push_back({.name = "nccl_bytes", .size_bytes = nccl_bytes, .is_tensor = false});
    if (parallel.zero_stage < 2) {
        // Gradients are copied into buckets, which live as long as the model.
        if (has_buckets) {
            terms.push_back({.name = "ddp_buckets_bytes", .size_bytes = parameters.size_bytes});
        }
    } else {
        // A gradient is whole until it has been reduced to its shards.
        terms.push_back({.name = "reduce_bucket_bytes",
                         .size_bytes = std::max(kBucketBytes, parameters.largest_tensor_bytes)});
    }
    if (parallel.zero_stage == 3) {
        // The layer that computes, and the next layer, which is fetched ahead.
        terms.push_back({.name = "gathered_parameters_bytes",
                         .size_bytes = 2 * parameters.largest_layer_bytes});
    }
    return terms;
}

double communicated_bytes(const DataParallel& parallel, int64_t gradient_bytes) {
    const auto n = static_cast<double>(parallel.num_gpus);
    const double all_reduce = 2 * (n - 1) / n * static_cast<double>(gradient_bytes);
    return parallel.zero_stage == 3 ? 1.5 * all_reduce : all_reduce;
}

}  // namespace profiler
