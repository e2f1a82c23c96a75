#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>

/// What a GPU does in a training step.
namespace profiler {

/// Compute, exposed communication and idle add up to the time of the step.
struct GpuTime {
    int64_t compute_ns = 0;  // kernels and copies, whatever else runs beside them
    int64_t idle_ns = 0;     // nothing runs
    /// NCCL's kernels: all of them, and only while nothing else runs. None: predicted, where
    /// communication has no time.
    std::optional<int64_t> communication_ns;
    std::optional<int64_t> exposed_communication_ns;
};

/// Of the last recorded step, on the profiled device. None: no kernels are recorded, or no step.
std::optional<GpuTime> gpu_time_of_last_step(const Trace& trace);

/// The kernel of a collective: NCCL's names begin with "ncclDevKernel_" or "ncclKernel_".
bool is_nccl_kernel(std::string_view name);

}  // namespace profiler
