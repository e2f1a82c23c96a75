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

    // ---- elements ----------------------------------------------------------------------------
    template <typename T>
    static void run(const kernels::DropoutForwardArgs<T>& args, int64_t count) {
        over_elements(count, [&](int64_t b, int64_t e) { kernels::dropout_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::DropoutBackwardArgs<T>& args, int64_t count) {
        over_elements(count, [&](int64_t b, int64_t e) { kernels::dropout_backward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::InplaceGeluForwardArgs<T>& args, int64_t count) {
        over_elements(count,
                      [&](int64_t b, int64_t e) { kernels::inplace_gelu_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::InplaceGeluBackwardArgs<T>& args, int64_t count) {
        over_elements(count,
                      [&](int64_t b, int64_t e) { kernels::inplace_gelu_backward(args, b, e); });
    }

    // ---- rows --------------------------------------------------------------------------------
    template <typename T>
    static void run(const kernels::LayerNormForwardArgs<T>& args, int64_t num_rows) {
        parallel_rows(num_rows, args.hidden_size, 1,
                      [&](int64_t b, int64_t e) { kernels::layer_norm_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::LayerNormBackwardArgs<T>& args, int64_t num_rows) {
        over_partials(num_rows, args.hidden_size, [&](int64_t b, int64_t e) {
            kernels::layer_norm_backward(args, num_rows, b, e);
        });
    }
    static int64_t layer_norm_num_partials(int64_t num_rows) {
        return kernels::layer_norm_num_partials(num_rows);
    }
    template <typename T>
    static void reduce_partials(const kernels::StatOf<T>* partials, int64_t num_partials,
                                int64_t hidden_size, T* dgamma, T* dbeta) {
        parallel_ranges(hidden_size, kernels::kElementGranularity,
                        kGrainElements / std::max<int64_t>(1, num_partials),
                        [&](int64_t b, int64_t e) {
                            kernels::layer_norm_reduce_partials(partials, num_partials, hidden_size,
                                                                dgamma, dbeta, b, e);
                        });
    }
    template <typename T>
    static void run(const kernels::ResidualLayerNormForwardArgs<T>& args, int64_t num_rows) {
        over_rows(num_rows, args.hidden_size,
                  [&](int64_t b, int64_t e) { kernels::residual_layer_norm_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::ResidualLayerNormBackwardArgs<T>& args, int64_t num_rows) {
        over_partials(num_rows, args.hidden_size, [&](int64_t b, int64_t e) {
            kernels::residual_layer_norm_backward(args, num_rows, b, e);
        });
    }
    template <typename T>
    static void run(const kernels::SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows) {
        over_rows(num_rows, args.num_keys,
                  [&](int64_t b, int64_t e) { kernels::softmax_dropout_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::RecomputeDroppedArgs<T>& args, int64_t num_rows) {
        over_rows(num_rows, args.num_keys,
                  [&](int64_t b, int64_t e) { kernels::recompute_dropped_probs(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows) {
        over_rows(num_rows, args.num_keys,
                  [&](int64_t b, int64_t e) { kernels::softmax_dropout_backward(args, b, e); });
    }

    template <typename T>
    static void run(const kernels::BiasDropoutForwardArgs<T>& args, int64_t num_rows) {
        over_rows(num_rows, args.num_columns,
                  [&](int64_t b, int64_t e) { kernels::bias_dropout_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::BiasDropoutBackwardArgs<T>& args, int64_t num_rows) {
        over_partials(num_rows, args.num_columns, [&](int64_t b, int64_t e) {
            kernels::bias_dropout_backward(args, num_rows, b, e);
        });
    }
    template <typename T>
    static void run(const kernels::BiasHeadsForwardArgs<T>& args, int64_t num_rows) {
        parallel_rows(num_rows, args.shape.num_columns(), 1,
                      [&](int64_t b, int64_t e) { kernels::bias_heads_forward(args, b, e); });
    }
    template <typename T>
    static void run(const kernels::BiasHeadsBackwardArgs<T>& args, int64_t num_rows) {
        over_partials(num_rows, args.shape.num_columns(), [&](int64_t b, int64_t e) {
            kernels::bias_heads_backward(args, num_rows, b, e);
        });
    }
    template <typename T>
    static void run(const kernels::ScaleShiftBackwardArgs<T>& args, int64_t num_rows) {
        over_partials(num_rows, args.num_columns, [&](int64_t b, int64_t e) {
            kernels::scale_shift_backward(args, num_rows, b, e);
        });
    }

private:
    static void over_elements(int64_t count, Range run) {
        parallel_ranges(count, kernels::kElementGranularity, kGrainElements, run);
    }
    static void over_partials(int64_t num_rows, int64_t row_size, Range run) {
        const int64_t count = layer_norm_num_partials(num_rows);
        parallel_rows(count, num_rows / count * row_size, 1, run);
    }
    static void over_rows(int64_t num_rows, int64_t row_size, Range run) {
        parallel_rows(num_rows, row_size, kernels::row_granularity(row_size), run);
    }
};

}  // namespace models::ops
