#pragma once

#include "models/config/result.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// What each layer adds to a step's memory and work, read from a trace whose layers may have
/// recipes of their own.
namespace profiler {

/// By differences of what lives, in bytes as asked for: what a layer shares with its neighbours is
/// counted once, and the layers of any mix add up.
struct LayerBytes {
    int64_t saved_bytes = 0;     // that live from its forward on
    int64_t forward_bytes = 0;   // above what lives when its forward begins, at the highest
    int64_t backward_bytes = 0;  // above what lives when its backward begins, at the highest
    int64_t gradient_bytes = 0;  // of parameters, that its backward leaves
};

struct LayerProfile {
    std::vector<LayerBytes> bytes;  // by layer
    std::vector<StepWork> work;     // by layer; ops alone
    int64_t head_bytes = 0;         // that head and loss take above all that is kept
};

/// Of the last step. Errors: as step_work_of; a layer without ops in forward or backward.
models::Result<LayerProfile> profile_layers(const Trace& trace);

}  // namespace profiler
