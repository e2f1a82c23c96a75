#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

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

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the capture was cancelled"; }
};

}  // namespace profiler
