#pragma once

#include "profiler/capture/cuda/activity_join.h"
#include "profiler/trace/allocator_rows.h"

#include <cstdint>
#include <string>

namespace profiler {

/// What a capture on a GPU missed or had to assume, besides the allocator's part.
struct GpuFaults {
    std::string cupti_problem;  // why there are no kernels; empty: they were recorded
    int64_t dropped_records = 0;
    int64_t unknown_records = 0;
    int64_t broken_buffers = 0;
    JoinCounts join;
    int64_t most_host_bytes = 0;  // that CUPTI's records took
    bool has_nvml = true;
};

/// Adds one diagnostic to the trace for each fault that occurred. `differing_totals` is how often
/// torch's totals were not those of the trace.
void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace);

}  // namespace profiler
