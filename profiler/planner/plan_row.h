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

/// The largest batch that fits into `capacity_bytes`; 0: none.
models::Result<int64_t> find_max_batch(StepFamily& family, const MemoryOptions& options,
                                       int64_t capacity_bytes);

}  // namespace profiler
