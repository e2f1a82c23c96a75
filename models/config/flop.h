#pragma once

#include "models/config/workload.h"

#include <cstdint>

/// Floating-point operations of a training step, from its shapes alone. Only contractions count:
/// a product of [M, K] and [K, N] is 2 M N K.
namespace models {

struct Flop {
    int64_t model = 0;     // forward and backward as written: three times the forward
    int64_t hardware = 0;  // with what backward computes again
};

/// The forward of one layer at one batch. Attention takes 8 B S H² + 4 B S² H, the MLP 4 B S H I;
/// a decoder layer of an encoder and a decoder has attention twice.
int64_t layer_forward_flop(const Workload& workload);
/// The forward of one micro-batch: all layers and the head.
int64_t forward_flop(const Workload& workload);

/// One step: all its micro-batches. Checkpointed layers run their forward twice; so do the scores
/// of selective recomputation and of fused attention.
Flop step_flop(const Workload& workload);
/// Forward and backward of one layer whose input needs no gradient, as in a benchmark of a layer.
/// Model flop are three times the forward all the same.
Flop layer_flop(const Workload& workload);

}  // namespace models
