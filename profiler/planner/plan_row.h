#pragma once

#include "profiler/planner/plan.h"

/// One row of a plan: one workload on one GPU.
namespace profiler {

/// A row that is refused if the GPU or the settings cannot run the workload, and else still empty.
/// Traces nothing.
PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const models::Workload& workload, const Gpu& gpu);
PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const PlannedProgram& program, const Gpu& gpu);

/// Fills memory, times and batches of a row that start_row did not refuse.
void fill_row(PlanRow& row, const PlanRequest& request, const PlannerData& data,
              BatchInterpolation& interpolation);

/// The step behind a row's figures, for a workload on its GPU.
StepToTrace step_to_trace(const PlanRow& row, const PlanRequest& request, const PlannerData& data,
                          const models::Workload& workload);

/// The largest batch that fits; traced where the request asks for that.
models::Result<int64_t> largest_batch(BatchInterpolation& interpolation,
                                      const MemoryOptions& options, int64_t capacity_bytes,
                                      const PlanRequest& request);

/// What a GPU and its software environment leave for the tensors of a step.
struct GpuLimits {
    PlanMemory memory;  // without contents
    MemoryOptions options;
    int64_t capacity_bytes = 0;  // for tensors
};
GpuLimits limits_of(const PlanRow& row, const PlanRequest& request, const Parameters& parameters);

/// Bandwidth of the link between GPUs: the request's if it has one, else the calibration's; 0 for
/// one GPU.
double bus_bytes_per_s(const PlanRequest& request, const PlannerData& data, const Gpu& gpu);

}  // namespace profiler
