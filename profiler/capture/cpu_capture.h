#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// The CPU source: real training steps on libtorch, every allocation recorded.
namespace profiler {

/// What a capture tells while it runs. Any member may be empty.
struct CaptureCallbacks {
    /// "building the model", "warm-up", "step": done of total.
    std::function<void(std::string_view stage, int64_t done, int64_t total)> progress;
    /// At the begin of each phase of a recorded step.
    std::function<void(int64_t step, PhaseKind phase)> phase_begun;
    /// After each recorded step or sweep point: the trace so far; what is new is not committed.
    std::function<void(Trace&)> step_done;
    /// Asked between phases; true ends the capture with `Cancelled`.
    std::function<bool()> cancelled;
};

struct CaptureOptions {
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;  // -1: what the machine has available
    int num_threads = 0;              // 0: torch's default
};

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the capture was cancelled"; }
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
