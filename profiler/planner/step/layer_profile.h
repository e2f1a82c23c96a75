#pragma once

#include "models/config/result.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// What each layer adds to the memory and the work of a step, read from a trace. Each layer may
/// have its own recipe.
namespace profiler {

/// Differences of the live bytes (as requested, without rounding) at the ends of the layer's
/// forward and backward. So a tensor that neighbours share counts once, and the layers of a step
/// add up.
struct LayerBytes {
    int64_t saved_bytes = 0;     // that its forward leaves for backward
    int64_t forward_bytes = 0;   // highest rise during its forward
    int64_t backward_bytes = 0;  // highest rise during its backward
    int64_t gradient_bytes = 0;  // of its parameters, that its backward leaves
};

struct LayerProfile {
    std::vector<LayerBytes> bytes;  // by layer
    std::vector<StepWork> work;     // by layer; ops alone
    int64_t head_bytes = 0;         // that head and loss need on top of all saved bytes
};

/// Profiles the last step. Errors: as step_work_of; a layer without ops in forward or backward.
models::Result<LayerProfile> profile_layers(const Trace& trace);

}  // namespace profiler
