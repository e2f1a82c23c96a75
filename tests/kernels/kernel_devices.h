#pragma once

#include "kernels/column_passes.h"
#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"

#include <cstdint>
#include <vector>

namespace kernels::test {

/// Runs any kernel by the type of its arguments, over all elements or rows. OnDevice of
/// cuda_kernels.h does the same on CUDA.
struct OnCpu {
    static int64_t num_partials(int64_t num_rows) { return layer_norm_num_partials(num_rows); }

    template <typename T>
    static void run(const DropoutForwardArgs<T>& args, int64_t count) {
        dropout_forward(args, 0, count);
    }
    template <typename T>
    static void run(const DropoutBackwardArgs<T>& args, int64_t count) {
        dropout_backward(args, 0, count);
    }
    template <typename T>
    static void run(const InplaceGeluForwardArgs<T>& args, int64_t count) {
        inplace_gelu_forward(args, 0, count);
    }
    template <typename T>
    static void run(const InplaceGeluBackwardArgs<T>& args, int64_t count) {
        inplace_gelu_backward(args, 0, count);
    }
    template <typename T>
    static void run(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows) {
        softmax_dropout_forward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows) {
        softmax_dropout_backward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const RecomputeDroppedArgs<T>& args, int64_t num_rows) {
        recompute_dropped_probs(args, 0, num_rows);
    }
    template <typename T>
    static void run(const LayerNormForwardArgs<T>& args, int64_t num_rows) {
        layer_norm_forward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const LayerNormBackwardArgs<T>& args, int64_t num_rows) {
        layer_norm_backward(args, num_rows, 0, num_partials(num_rows));
    }
    template <typename T>
    static void run(const ResidualLayerNormForwardArgs<T>& args, int64_t num_rows) {
        residual_layer_norm_forward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const ResidualLayerNormBackwardArgs<T>& args, int64_t num_rows) {
        residual_layer_norm_backward(args, num_rows, 0, num_partials(num_rows));
    }
    template <typename T>
    static void run(const BiasDropoutForwardArgs<T>& args, int64_t num_rows) {
        bias_dropout_forward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const BiasDropoutBackwardArgs<T>& args, int64_t num_rows) {
        bias_dropout_backward(args, num_rows, 0, num_partials(num_rows));
    }
    template <typename T>
    static void run(const BiasHeadsForwardArgs<T>& args, int64_t num_rows) {
        bias_heads_forward(args, 0, num_rows);
    }
    template <typename T>
    static void run(const BiasHeadsBackwardArgs<T>& args, int64_t num_rows) {
        bias_heads_backward(args, num_rows, 0, num_partials(num_rows));
    }
    template <typename T>
    static void run(const ScaleShiftBackwardArgs<T>& args, int64_t num_rows) {
        scale_shift_backward(args, num_rows, 0, num_partials(num_rows));
    }
    template <typename T>
    static void reduce(const std::vector<StatOf<T>>& partials, int64_t num_rows, int64_t size,
                       T* dgamma, T* dbeta) {
        layer_norm_reduce_partials(partials.data(), num_partials(num_rows), size, dgamma, dbeta, 0,
                                   size);
    }
};

}  // namespace kernels::test
