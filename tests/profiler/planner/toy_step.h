#pragma once

#include "models/config/workload.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/trace/trace.h"

/// A training step small enough to follow by hand, in the form of a trace without a GPU.
namespace tests {

struct ToyOptions {
    bool has_op_tensors = true;
    int64_t extra_from_batch = 0;  // from this batch on one more allocation; 0 = never
    int num_steps = 1;
    int in_place_passes = 0;     // more of its backward with gelu=in_place, as a slow kernel makes
    int64_t warm_up_bytes = -1;  // of a temporary that only an unrecorded first step has; -1: none
};

/// bert-base's sizes cut down: two layers of hidden 64, intermediate 256, sequence 32.
models::Workload toy_workload(int64_t batch_size = 2);

/// Each layer: FF1 [B·S, H]·[H, I], GELU, FF2 [B·S, I]·[I, H]; the inputs of all three are kept.
/// A layer with gelu=in_place keeps half of it, with checkpoint=per_layer only its input.
/// Parameters, two moments each, a cuBLAS workspace, a parameter update with one temporary each.
profiler::Trace make_toy_step(const models::Workload& workload, const ToyOptions& options = {});

/// Makes toy steps; `calls`, when given, counts them.
profiler::StepSource toy_source(const ToyOptions& options = {}, int* calls = nullptr);

}  // namespace tests
