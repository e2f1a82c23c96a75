#pragma once

#include "kernels/column_passes.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"

// Backward calls in the form that kernels/dispatch.h dispatches: one struct and a range of
// partials.

namespace kernels {

template <typename Args>
struct RowsJob {
    Args args;
    int64_t num_rows = 0;
};
template <typename T>
using BiasDropoutBackwardJob = RowsJob<BiasDropoutBackwardArgs<T>>;
template <typename T>
using BiasHeadsBackwardJob = RowsJob<BiasHeadsBackwardArgs<T>>;
template <typename T>
using ScaleShiftBackwardJob = RowsJob<ScaleShiftBackwardArgs<T>>;
template <typename T>
using LayerNormBackwardJob = RowsJob<LayerNormBackwardArgs<T>>;
template <typename T>
using ResidualLayerNormBackwardJob = RowsJob<ResidualLayerNormBackwardArgs<T>>;

template <typename T>
struct LayerNormReduceJob {
    const StatOf<T>* partials = nullptr;  // [num_partials, 2, H]
    T* dgamma = nullptr;                  // [H] or null
    T* dbeta = nullptr;                   // [H] or null
    int64_t num_partials = 0;
    int64_t hidden_size = 0;
};

template <typename T>
void bias_dropout_backward_job(const BiasDropoutBackwardJob<T>& job, int64_t begin, int64_t end);
template <typename T>
void bias_heads_backward_job(const BiasHeadsBackwardJob<T>& job, int64_t begin, int64_t end);
template <typename T>
void scale_shift_backward_job(const ScaleShiftBackwardJob<T>& job, int64_t begin, int64_t end);
template <typename T>
void layer_norm_backward_job(const LayerNormBackwardJob<T>& job, int64_t begin, int64_t end);
/// A range of columns.
template <typename T>
void layer_norm_reduce_job(const LayerNormReduceJob<T>& job, int64_t begin, int64_t end);
template <typename T>
void residual_layer_norm_backward_job(const ResidualLayerNormBackwardJob<T>& job, int64_t begin,
                                      int64_t end);

}  // namespace kernels
