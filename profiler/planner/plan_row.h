#pragma once

#include "profiler/planner/plan.h"

/// One cell of a plan.
namespace profiler {

/// A cell whose card or settings rule it out before anything is traced; else none yet known.
PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const models::Workload& workload, const Gpu& gpu);

/// Memory, times and batches of a row that start_row left ok.
void fill_row(PlanRow& row, const PlanRequest& request, const PlannerData& data,
              StepFamily& family);

/// What a card and its setup leave for the tensors of a step.
struct CardLimits {
    PlanMemory memory;  // without contents
    MemoryOptions options;
    int64_t capacity_bytes = 0;  // for tensors
};
CardLimits limits_of(const PlanRow& row, const PlanRequest& request, const Parameters& parameters);

/// Of the link between GPUs: the request's, or else the calibration's; 0: there is one GPU.
double bus_bytes_per_s(const PlanRequest& request, const PlannerData& data, const Gpu& gpu);

/// Whether a step with these peaks runs in `capacity_bytes`: between what it allocates and what it
/// reserves the allocator decides, which gives back what is cached and asks again.
/// `limited` simulates the step under that limit.
models::Result<bool> fits(const StepMemory& unlimited, int64_t capacity_bytes,
                          const std::function<models::Result<StepMemory>()>& limited);

/// The batches at which throughput is looked at: all up to 64, above them some, always the last.
/// `dense` false: batches cost a trace each, and powers of two must do.
std::vector<int64_t> batches_up_to(int64_t max_batch, bool dense);

/// The largest batch that fits into `capacity_bytes`; 0: none.
models::Result<int64_t> find_max_batch(StepFamily& family, const MemoryOptions& options,
                                       int64_t capacity_bytes);

}  // namespace profiler
