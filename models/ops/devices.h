#pragma once

#include "kernels/column_passes.h"
#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"

#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <cstdint>

/// The device that an op's kernel runs on. Each op is a template over `Device` (`*_kernels.h`): it
/// checks its arguments, allocates its results, and calls `Device::run(args, count)`.
///
///     Cpu    the kernel over ranges of elements or rows, on torch's threads
///     Meta   shapes only: nothing runs, and scratch has the size that CUDA takes
///     Cuda   a launch on torch's current stream (cuda/library_cuda.cpp)
namespace models::ops {

/// Below this number of elements per task, a thread costs more than it saves.
inline constexpr int64_t kGrainElements = 1 << 14;

using Range = c10::function_ref<void(int64_t begin, int64_t end)>;

/// Calls `run(begin, end)` on torch's threads for ranges of [0, count) that start at multiples of
/// `granularity`; `grain` is the smallest range worth a thread.
void parallel_ranges(int64_t count, int64_t granularity, int64_t grain, Range run);

/// Whether ops that draw a mask may run while the stream captures a CUDA graph. The key of a mask
/// is an argument of a kernel's launch, and a graph replays its launches, so it would drop the same
/// elements in every step. The program allows it with torch.ops.tempo.allow_replayed_masks(True),
/// for example to measure kernels.
bool replayed_masks_allowed();

/// As above for rows of `row_size` elements.
inline void parallel_rows(int64_t num_rows, int64_t row_size, int64_t granularity, Range run) {
    parallel_ranges(num_rows, granularity, kGrainElements / std::max<int64_t>(1, row_size), run);
}

struct Meta {
    static constexpr bool kComputes = false;
    static constexpr bool kSumsInMemory = false;
    static int64_t layer_norm_num_partials(int64_t num_rows) {
        return kernels::layer_norm_cuda_num_partials(num_rows);
    }
};

struct Cpu {
    static constexpr bool kComputes = true;
    static constexpr bool kSumsInMemory = true;  // residual_layer_norm reads the sum again
    static constexpr uintptr_t kAlignment = 1;

    static int64_t layer_norm_num_partials(int64_t num_rows) {
        return kernels::layer_norm_num_partials(num_rows);
    }

    // run() for the arguments of each kernel, and what `count` counts of them. A kernel over ranges
    // of partial sums learns from it how many rows there are.
#define MODELS_RUN_ON_CPU(Args, kernel, over)                                                      \
    template <typename T>                                                                          \
    static void run(kernels::Args<T> args, int64_t count) {                                        \
        if constexpr (requires { args.num_rows; }) args.num_rows = count;                          \
        over(args, count, [&](int64_t begin, int64_t end) { kernels::kernel(args, begin, end); }); \
    }
    MODELS_RUN_ON_CPU(DropoutForwardArgs, dropout_forward, over_elements)
    MODELS_RUN_ON_CPU(DropoutBackwardArgs, dropout_backward, over_elements)
    MODELS_RUN_ON_CPU(InplaceGeluForwardArgs, inplace_gelu_forward, over_elements)
    MODELS_RUN_ON_CPU(InplaceGeluBackwardArgs, inplace_gelu_backward, over_elements)
    MODELS_RUN_ON_CPU(LayerNormForwardArgs, layer_norm_forward, over_any_rows)
    MODELS_RUN_ON_CPU(LayerNormBackwardArgs, layer_norm_backward, over_partials)
    MODELS_RUN_ON_CPU(LayerNormReduceArgs, layer_norm_reduce, over_columns)
    MODELS_RUN_ON_CPU(ResidualLayerNormForwardArgs, residual_layer_norm_forward, over_rows)
    MODELS_RUN_ON_CPU(ResidualLayerNormBackwardArgs, residual_layer_norm_backward, over_partials)
    MODELS_RUN_ON_CPU(SoftmaxDropoutForwardArgs, softmax_dropout_forward, over_rows)
    MODELS_RUN_ON_CPU(SoftmaxDropoutBackwardArgs, softmax_dropout_backward, over_rows)
    MODELS_RUN_ON_CPU(RecomputeDroppedArgs, recompute_dropped_probs, over_rows)
    MODELS_RUN_ON_CPU(BiasDropoutForwardArgs, bias_dropout_forward, over_rows)
    MODELS_RUN_ON_CPU(BiasDropoutBackwardArgs, bias_dropout_backward, over_partials)
    MODELS_RUN_ON_CPU(BiasHeadsForwardArgs, bias_heads_forward, over_any_rows)
    MODELS_RUN_ON_CPU(BiasHeadsBackwardArgs, bias_heads_backward, over_partials)
    MODELS_RUN_ON_CPU(ScaleShiftBackwardArgs, scale_shift_backward, over_partials)
#undef MODELS_RUN_ON_CPU

private:
    /// The elements of a row.
    template <typename Args>
    static int64_t row_size(const Args& args) {
        if constexpr (requires { args.hidden_size; }) return args.hidden_size;
        if constexpr (requires { args.num_keys; }) return args.num_keys;
        if constexpr (requires { args.num_columns; }) return args.num_columns;
        if constexpr (requires { args.shape; }) return args.shape.num_columns();
    }

    template <typename Args>
    static void over_elements(const Args&, int64_t count, Range run) {
        parallel_ranges(count, kernels::kElementGranularity, kGrainElements, run);
    }
    template <typename Args>
    static void over_any_rows(const Args& args, int64_t num_rows, Range run) {
        parallel_rows(num_rows, row_size(args), 1, run);
    }
    /// Rows whose mask is stored flat.
    template <typename Args>
    static void over_rows(const Args& args, int64_t num_rows, Range run) {
        parallel_rows(num_rows, row_size(args), kernels::row_granularity(row_size(args)), run);
    }
    template <typename Args>
    static void over_partials(const Args& args, int64_t num_rows, Range run) {
        const int64_t count = layer_norm_num_partials(num_rows);
        parallel_rows(count, num_rows / count * row_size(args), 1, run);
    }
    template <typename T>
    static void over_columns(const kernels::LayerNormReduceArgs<T>& args, int64_t hidden_size,
                             Range run) {
        parallel_ranges(hidden_size, kernels::kElementGranularity,
                        kGrainElements / std::max<int64_t>(1, args.num_partials), run);
    }
};

}  // namespace models::ops
