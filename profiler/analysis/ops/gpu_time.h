#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// What a GPU does in a training step.
namespace profiler {

struct TimeSpan {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
};

/// How much of time the spans cover together. One that ends before it starts covers nothing.
int64_t covered_ns(std::vector<TimeSpan> spans);

/// Compute, exposed communication and idle add up to the step: on the GPU it lasts from the end of
/// the last kernel of the step before (without one: from its own beginning) to that of its own.
struct GpuTime {
    int64_t step_ns = 0;
    int64_t compute_ns = 0;  // kernels that are not NCCL's, and copies
    int64_t idle_ns = 0;     // nothing runs
    /// NCCL's kernels: all of them, and only while nothing else runs. None: times are modelled, and
    /// no kernel of NCCL has any.
    std::optional<int64_t> communication_ns;
    std::optional<int64_t> exposed_communication_ns;
};

/// On the profiled device. None: no step, or none of its kernels is known.
std::optional<GpuTime> gpu_time_of(const Trace& trace, Id<Step> step);

/// The kernel of a collective: NCCL's names begin with "ncclDevKernel_" or "ncclKernel_".
bool is_nccl_kernel(std::string_view name);

}  // namespace profiler
