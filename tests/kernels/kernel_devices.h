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

    // Backward goes over partials; other kernels over `count` elements, rows or columns.
#define KERNELS_RUN(Args, kernel)                    \
    template <typename T>                            \
    static void run(Args<T> args, int64_t count) {   \
        if constexpr (requires { args.num_rows; }) { \
            args.num_rows = count;                   \
            count = num_partials(count);             \
        }                                            \
        kernel(args, 0, count);                      \
    }
    KERNELS_RUN(DropoutForwardArgs, dropout_forward)
    KERNELS_RUN(DropoutBackwardArgs, dropout_backward)
    KERNELS_RUN(InplaceGeluForwardArgs, inplace_gelu_forward)
    KERNELS_RUN(InplaceGeluBackwardArgs, inplace_gelu_backward)
    KERNELS_RUN(SoftmaxDropoutForwardArgs, softmax_dropout_forward)
    KERNELS_RUN(SoftmaxDropoutBackwardArgs, softmax_dropout_backward)
    KERNELS_RUN(RecomputeDroppedArgs, recompute_dropped_probs)
    KERNELS_RUN(LayerNormForwardArgs, layer_norm_forward)
    KERNELS_RUN(LayerNormBackwardArgs, layer_norm_backward)
    KERNELS_RUN(LayerNormReduceArgs, layer_norm_reduce)
    KERNELS_RUN(ResidualLayerNormForwardArgs, residual_layer_norm_forward)
    KERNELS_RUN(ResidualLayerNormBackwardArgs, residual_layer_norm_backward)
    KERNELS_RUN(BiasDropoutForwardArgs, bias_dropout_forward)
    KERNELS_RUN(BiasDropoutBackwardArgs, bias_dropout_backward)
    KERNELS_RUN(BiasHeadsForwardArgs, bias_heads_forward)
    KERNELS_RUN(BiasHeadsBackwardArgs, bias_heads_backward)
    KERNELS_RUN(ScaleShiftBackwardArgs, scale_shift_backward)
#undef KERNELS_RUN

    template <typename T>
    static void reduce(const std::vector<StatOf<T>>& partials, int64_t num_rows, int64_t size,
                       T* dgamma, T* dbeta) {
        run(LayerNormReduceArgs<T>{partials.data(), dgamma, dbeta, num_partials(num_rows), size},
            size);
    }
};

}  // namespace kernels::test
