#pragma once

#include <cstdint>
#include <vector>

namespace profiler {

/// Which steps of a workload are recorded, on any device that is measured.
struct CaptureOptions {
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;  // -1: what the device has
    int num_threads = 0;              // of the processor; 0: torch's default
};

/// Which batch sizes a sweep tries.
struct SweepOptions {
    std::vector<int64_t> batch_sizes;  // empty: 1, 2, 4, ... to the limit, then bisection
    int64_t max_batch_size = 4096;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
};

}  // namespace profiler
