#pragma once

#include "profiler/planner/plan.h"

/// One cell of a plan.
namespace profiler {

/// A cell whose GPU or settings rule it out before anything is traced; else none yet known.
PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const models::Workload& workload, const Gpu& gpu);

/// Memory, times and batches of a row that start_row left ok.
void fill_row(PlanRow& row, const PlanRequest& request, const PlannerData& data,
              BatchInterpolation& interpolation);

/// What a GPU and its setup leave for the tensors of a step.
struct GpuLimits {
    PlanMemory memory;  // without contents
    MemoryOptions options;
    int64_t capacity_bytes = 0;  // for tensors
};
GpuLimits limits_of(const PlanRow& row, const PlanRequest& request, const Parameters& parameters);

/// Of the link between GPUs: the request's, or else the calibration's; 0: there is one GPU.
double bus_bytes_per_s(const PlanRequest& request, const PlannerData& data, const Gpu& gpu);

/// Whether a step with these peaks runs in `capacity_bytes`: between what it allocates and what it
/// reserves the allocator decides, which gives back what is cached and asks again.
/// `limited` simulates the step under that limit.
models::Result<bool> fits(const StepMemory& unlimited, int64_t capacity_bytes,
                          const std::function<models::Result<StepMemory>()>& limited);

/// The least that a step runs in, to 2 MiB, where it does not run in `too_small_bytes`: the
/// allocator gives back what is cached, so that this lies below what it reserves without a limit.
/// `limited` simulates the step under a limit.
models::Result<int64_t> least_capacity_bytes(
    const StepMemory& unlimited, int64_t too_small_bytes,
    const std::function<models::Result<StepMemory>(int64_t limit_bytes)>& limited);
models::Result<int64_t> least_capacity_bytes(BatchInterpolation& interpolation,
                                             const MemoryOptions& options, int64_t batch_size,
                                             int64_t too_small_bytes);

/// The batches at which throughput is looked at first: all up to 64, above them some, always the
/// last. `dense` false: batches cost a trace each, and powers of two must do.
std::vector<int64_t> batches_up_to(int64_t max_batch, bool dense);

/// The batches between each of `best` and its neighbours in `looked_at` (rising), which are looked
/// at next, at most 64 of each: throughput rises and falls with whole tiles and waves of products.
std::vector<int64_t> batches_beside(const std::vector<int64_t>& best,
                                    const std::vector<int64_t>& looked_at);

/// The largest batch that fits into `capacity_bytes`; 0: none.
models::Result<int64_t> find_max_batch(BatchInterpolation& interpolation,
                                       const MemoryOptions& options, int64_t capacity_bytes);

}  // namespace profiler
