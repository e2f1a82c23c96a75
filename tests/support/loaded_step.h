#pragma once

#include "profiler/analysis/step_index.h"

#include <utility>

namespace tests {

/// A trace with the index that views borrow.
struct LoadedStep {
    explicit LoadedStep(profiler::Trace made) : trace(std::move(made)), index(trace) {}

    profiler::Trace trace;
    profiler::StepIndex index;
};

}  // namespace tests
