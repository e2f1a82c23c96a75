#pragma once

#include "kernels/inplace_layernorm.h"

// The calls of inplace_layernorm.h in the form that kernels/dispatch.h dispatches: one struct and a
// range.

namespace kernels {

template <typename T>
struct LayerNormBackwardJob {
    LayerNormBackwardArgs<T> args;
    int64_t num_rows = 0;
};

template <typename T>
struct LayerNormReduceJob {
    const StatOf<T>* partials = nullptr;  // [num_partials, 2, H]
    T* dgamma = nullptr;                  // [H] or null
    T* dbeta = nullptr;                   // [H] or null
    int64_t num_partials = 0;
    int64_t hidden_size = 0;
};

template <typename T>
void layer_norm_backward_job(const LayerNormBackwardJob<T>& job, int64_t partial_begin,
                             int64_t partial_end);
template <typename T>
void layer_norm_reduce_job(const LayerNormReduceJob<T>& job, int64_t h_begin, int64_t h_end);

}  // namespace kernels
