// The CUDA kernels of torch.ops.tempo, in a library of their own (tempo_ops_cuda). It is opened
// after libtorch_cuda, if CUDA is there.

#include "models/ops/attention_core_kernels.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/devices.h"
#include "models/ops/dropout_kernels.h"
#include "models/ops/inplace_gelu_kernels.h"
#include "models/ops/inplace_layer_norm_kernels.h"
#include "models/ops/residual_layer_norm_kernels.h"

#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <type_traits>

namespace models::ops {
namespace {

/// Whether a kernel with these arguments draws a mask: a forward that drops, and a backward whose
/// mask is not stored.
template <class Args>
bool draws_mask(const Args& args) {
    if constexpr (requires { args.key; }) {
        constexpr bool writes_mask = std::is_same_v<decltype(args.mask), uint8_t*>;
        const bool draws = args.dropout_p > 0 && args.dropout_p < 1;  // 1 drops all
        return draws && (writes_mask || args.mask_kind == kernels::MaskKind::kNone);
    } else {
        return false;
    }
}

/// Launches on torch's current stream of the current device; asynchronous.
struct Cuda {
    static constexpr bool kComputes = true;
    static constexpr bool kSumsInMemory = false;
    static constexpr uintptr_t kAlignment = 16;  // of data that is read and written in packs

    template <typename T>
    static void run(const kernels::DropoutForwardArgs<T>& args, int64_t count) {
        kernels::launch_dropout_forward(args, count, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::DropoutBackwardArgs<T>& args, int64_t count) {
        kernels::launch_dropout_backward(args, count, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::InplaceGeluForwardArgs<T>& args, int64_t count) {
        kernels::launch_inplace_gelu_forward(args, count, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::InplaceGeluBackwardArgs<T>& args, int64_t count) {
        kernels::launch_inplace_gelu_backward(args, count, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::LayerNormForwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_layer_norm_forward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::LayerNormBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_layer_norm_backward(args, num_rows, stream_of(args));
    }
    static int64_t layer_norm_num_partials(int64_t num_rows) {
        return kernels::layer_norm_cuda_num_partials(num_rows);
    }
    template <typename T>
    static void reduce_partials(const kernels::StatOf<T>* partials, int64_t num_partials,
                                int64_t hidden_size, T* dgamma, T* dbeta) {
        kernels::launch_layer_norm_reduce_partials(partials, num_partials, hidden_size, dgamma,
                                                   dbeta, stream());
    }
    template <typename T>
    static void run(const kernels::ResidualLayerNormForwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_residual_layer_norm_forward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::ResidualLayerNormBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_residual_layer_norm_backward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_softmax_dropout_forward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::RecomputeDroppedArgs<T>& args, int64_t num_rows) {
        kernels::launch_recompute_dropped_probs(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_softmax_dropout_backward(args, num_rows, stream_of(args));
    }

    template <typename T>
    static void run(const kernels::BiasDropoutForwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_bias_dropout_forward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::BiasDropoutBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_bias_dropout_backward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::BiasHeadsForwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_bias_heads_forward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::BiasHeadsBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_bias_heads_backward(args, num_rows, stream_of(args));
    }
    template <typename T>
    static void run(const kernels::ScaleShiftBackwardArgs<T>& args, int64_t num_rows) {
        kernels::launch_scale_shift_backward(args, num_rows, stream_of(args));
    }

private:
    static kernels::CudaStream stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
    /// Errors: the stream captures a CUDA graph, which would replay the mask that `args` draws.
    template <class Args>
    static kernels::CudaStream stream_of(const Args& args) {
        if (draws_mask(args) && !replayed_masks_allowed()) {
            TORCH_CHECK(
                c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
                "tempo: a CUDA graph would replay one dropout mask in every step, because "
                "its key is an argument of the launch. Capture with p = 0, or allow it: "
                "torch.ops.tempo.allow_replayed_masks(True)");
        }
        return stream();
    }
};

/// Calls `function` with the device of its first tensor as the current device, which is where
/// kernels are launched.
template <auto function>
struct OnDevice;
template <typename Result, typename First, typename... Rest, Result (*function)(First, Rest...)>
struct OnDevice<function> {
    static Result call(First tensor, Rest... rest) {
        const c10::cuda::CUDAGuard guard(tensor.device());
        return function(tensor, rest...);
    }
};

}  // namespace

TORCH_LIBRARY_IMPL(tempo, CUDA, m) {
    m.impl("dropout_forward", OnDevice<&dropout_forward<Cuda>>::call);
    m.impl("dropout_backward", OnDevice<&dropout_backward<Cuda>>::call);
    m.impl("gelu_forward", OnDevice<&gelu_forward<Cuda>>::call);
    m.impl("bias_gelu_forward", OnDevice<&bias_gelu_forward<Cuda>>::call);
    m.impl("gelu_backward", OnDevice<&gelu_backward<Cuda>>::call);
    m.impl("layer_norm_forward", OnDevice<&layer_norm_forward<Cuda>>::call);
    m.impl("layer_norm_backward", OnDevice<&layer_norm_backward<Cuda>>::call);
    m.impl("rms_norm_forward", OnDevice<&rms_norm_forward<Cuda>>::call);
    m.impl("rms_norm_backward", OnDevice<&rms_norm_backward<Cuda>>::call);
    m.impl("residual_layer_norm_forward", OnDevice<&residual_layer_norm_forward<Cuda>>::call);
    m.impl("residual_layer_norm_backward", OnDevice<&residual_layer_norm_backward<Cuda>>::call);
    m.impl("bias_dropout_forward", OnDevice<&bias_dropout_forward<Cuda>>::call);
    m.impl("bias_dropout_backward", OnDevice<&bias_dropout_backward<Cuda>>::call);
    m.impl("bias_backward", OnDevice<&column_sum<Cuda>>::call);
    m.impl("bias_heads_forward", OnDevice<&bias_heads_forward<Cuda>>::call);
    m.impl("bias_heads_backward", OnDevice<&bias_heads_backward<Cuda>>::call);
    m.impl("bias_residual_norm_forward", OnDevice<&bias_residual_norm_forward<Cuda>>::call);
    m.impl("scale_shift_backward", OnDevice<&scale_shift_backward<Cuda>>::call);
    m.impl("residual_norm_backward", OnDevice<&residual_norm_backward<Cuda>>::call);
    m.impl("softmax_dropout_forward", OnDevice<&softmax_dropout_forward<Cuda>>::call);
    m.impl("softmax_dropout_recompute", OnDevice<&softmax_dropout_recompute<Cuda>>::call);
    m.impl("softmax_dropout_backward_", OnDevice<&softmax_dropout_backward_<Cuda>>::call);
}

}  // namespace models::ops
