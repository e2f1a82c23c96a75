#pragma once

#include "models/ops/attention_core_kernels.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/dropout_kernels.h"
#include "models/ops/inplace_gelu_kernels.h"
#include "models/ops/inplace_layer_norm_kernels.h"
#include "models/ops/residual_layer_norm_kernels.h"

#include <torch/library.h>

/// The ops of torch.ops.tempo without autograd, which each device implements.
namespace models::ops {

/// Adds them for `Device`; `Call<&function>::call` calls a function.
template <typename Device, template <auto> typename Call>
void add_kernel_ops(torch::Library& m) {
    m.impl("dropout_forward", Call<&dropout_forward<Device>>::call);
    m.impl("dropout_backward", Call<&dropout_backward<Device>>::call);
    m.impl("gelu_forward", Call<&gelu_forward<Device>>::call);
    m.impl("bias_gelu_forward", Call<&bias_gelu_forward<Device>>::call);
    m.impl("gelu_backward", Call<&gelu_backward<Device>>::call);
    m.impl("layer_norm_forward", Call<&layer_norm_forward<Device>>::call);
    m.impl("layer_norm_backward", Call<&layer_norm_backward<Device>>::call);
    m.impl("rms_norm_forward", Call<&rms_norm_forward<Device>>::call);
    m.impl("rms_norm_backward", Call<&rms_norm_backward<Device>>::call);
    m.impl("residual_layer_norm_forward", Call<&residual_layer_norm_forward<Device>>::call);
    m.impl("residual_layer_norm_backward", Call<&residual_layer_norm_backward<Device>>::call);
    m.impl("softmax_dropout_forward", Call<&softmax_dropout_forward<Device>>::call);
    m.impl("softmax_dropout_recompute", Call<&softmax_dropout_recompute<Device>>::call);
    m.impl("softmax_dropout_backward_", Call<&softmax_dropout_backward_<Device>>::call);
    m.impl("bias_dropout_forward", Call<&bias_dropout_forward<Device>>::call);
    m.impl("bias_dropout_backward", Call<&bias_dropout_backward<Device>>::call);
    m.impl("bias_backward", Call<&column_sum<Device>>::call);
    m.impl("bias_heads_forward", Call<&bias_heads_forward<Device>>::call);
    m.impl("bias_heads_backward", Call<&bias_heads_backward<Device>>::call);
    m.impl("bias_residual_norm_forward", Call<&bias_residual_norm_forward<Device>>::call);
    m.impl("scale_shift_backward", Call<&scale_shift_backward<Device>>::call);
    m.impl("residual_norm_backward", Call<&residual_norm_backward<Device>>::call);
}

}  // namespace models::ops
