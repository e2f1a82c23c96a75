#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace profiler {

/// A permission to run one step, where several recipes are measured in turn.
struct Turn {
    std::string run;  // the same for all recipes that are measured in turn with each other
    int64_t recipes =
        1;  // how many those are; 1: the others did not fit into memory beside this one
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
};

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the capture was cancelled"; }
};

}  // namespace profiler
