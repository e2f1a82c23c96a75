#pragma once

#include "profiler/layouts/encoder_ops.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What a capture is asked for, and what it calls while it runs.
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

/// What to measure of an encoder layer's dimension orders, and how often.
struct LayoutMeasurement {
    LayoutSizes sizes;
    int64_t num_rounds = 5;  // behind each median
};

/// A permission to run one step, where several recipes are measured in turn.
struct Turn {
    std::string run;  // the same for all recipes that are measured in turn with each other
    /// How many those are; 1: the others did not fit into memory beside this one.
    int64_t recipes = 1;
};

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the capture was cancelled"; }
};

/// What a capture calls while it runs. Any member may be empty.
struct CaptureCallbacks {
    /// "building the model", "warm-up", "step": done of total.
    std::function<void(std::string_view stage, int64_t done, int64_t total)> progress;
    /// Before each recorded step and each step of a sweep: waits until it may run. Empty: steps
    /// follow each other at once.
    std::function<Turn()> wait_for_turn;
    /// At the begin of each phase of a recorded step.
    std::function<void(int64_t step, PhaseKind phase)> phase_begun;
    /// After each recorded step or sweep point: the trace has new rows to commit.
    std::function<void()> step_done;
    /// Asked between phases. If true, the capture ends with `Cancelled`.
    std::function<bool()> cancelled;

    void check_cancelled() const {
        if (cancelled && cancelled()) throw Cancelled();
    }
};

}  // namespace profiler
