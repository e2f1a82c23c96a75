// The CUDA kernels of torch.ops.tempo, in a library of their own (tempo_ops_cuda). It is opened
// after libtorch_cuda, if CUDA is there.

#include "models/ops/attention_core_kernels.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/cuda/devices.h"
#include "models/ops/dropout_kernels.h"
#include "models/ops/inplace_gelu_kernels.h"
#include "models/ops/inplace_layer_norm_kernels.h"
#include "models/ops/residual_layer_norm_kernels.h"

#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

namespace models::ops {
namespace {

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
