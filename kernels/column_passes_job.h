#pragma once

#include "kernels/column_passes.h"

// The backward calls of column_passes.h in the form that kernels/dispatch.h dispatches.

namespace kernels {

template <typename Args>
struct ColumnPassJob {
    Args args;
    int64_t num_rows = 0;
};
template <typename T>
using BiasDropoutBackwardJob = ColumnPassJob<BiasDropoutBackwardArgs<T>>;
template <typename T>
using BiasHeadsBackwardJob = ColumnPassJob<BiasHeadsBackwardArgs<T>>;
template <typename T>
using ScaleShiftBackwardJob = ColumnPassJob<ScaleShiftBackwardArgs<T>>;

template <typename T>
void bias_dropout_backward_job(const BiasDropoutBackwardJob<T>& job, int64_t partial_begin,
                               int64_t partial_end);
template <typename T>
void bias_heads_backward_job(const BiasHeadsBackwardJob<T>& job, int64_t partial_begin,
                             int64_t partial_end);
template <typename T>
void scale_shift_backward_job(const ScaleShiftBackwardJob<T>& job, int64_t partial_begin,
                              int64_t partial_end);

}  // namespace kernels
