#pragma once

#include "kernels/residual_layernorm.h"

// A call of residual_layernorm.h in the form that kernels/dispatch.h dispatches.

namespace kernels {

template <typename T>
struct ResidualLayerNormBackwardJob {
    ResidualLayerNormBackwardArgs<T> args;
    int64_t num_rows = 0;
};

template <typename T>
void residual_layer_norm_backward_job(const ResidualLayerNormBackwardJob<T>& job,
                                      int64_t partial_begin, int64_t partial_end);

}  // namespace kernels
