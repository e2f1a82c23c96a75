#pragma once

#include "models/config/workload.h"
#include "profiler/capture/capture_callbacks.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// The CPU source: real training steps on libtorch, every allocation recorded.
namespace profiler {

struct CaptureOptions {
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;  // -1: what the machine has available
    int num_threads = 0;              // 0: torch's default
};

/// Which batch sizes a sweep tries.
struct SweepOptions {
    std::vector<int64_t> batch_sizes;  // empty: 1, 2, 4, ... to the limit, then bisection
    int64_t max_batch_size = 4096;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
};

/// Trains `workload` and records `options.steps` steps into `trace`, which must be empty.
/// Throws c10::OutOfMemoryError over the limit, Cancelled, c10::Error.
void capture_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                    const CaptureCallbacks& callbacks, Trace& trace);

/// Adds to `trace` the largest batch that trains and the step time at each batch tried. Running
/// out of memory is a data point.
void sweep_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                  const SweepOptions& sweep, const CaptureCallbacks& callbacks, Trace& trace);

}  // namespace profiler
