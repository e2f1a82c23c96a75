#include <ATen/autocast_mode.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <vector>

// torch.ops.tempo under autocast, with the dtypes of torch's own ops: norms in float, ops of a
// linear layer in autocast's dtype. gelu and dropout keep the dtype of their input, and so does
// attention: its kernels compute in float whatever the scores are, so what a matrix multiplication
// wrote in 16 bits stays there, where torch's softmax goes over to float.

namespace models::ops {
namespace {

using at::autocast::get_autocast_dtype;

/// The dtype to which tensor argument `index` of dtype `own` is cast.
using TypeOfArgument = at::ScalarType (*)(std::size_t index, at::ScalarType own,
                                          at::ScalarType autocast);

at::ScalarType in_float(std::size_t, at::ScalarType, at::ScalarType) { return at::kFloat; }
at::ScalarType in_autocast_type(std::size_t, at::ScalarType, at::ScalarType autocast) {
    return autocast;
}
/// scores, value, additive_mask: `value` is an input of a matrix multiplication; the mask takes the
/// dtype of the scores in the op.
at::ScalarType of_attention_core(std::size_t index, at::ScalarType own, at::ScalarType autocast) {
    const bool keeps = index != 1 && own == at::kFloat;
    return keeps ? own : autocast;
}

/// Casts the arguments and calls the op without autocast. Autograd records the casts.
template <c10::DeviceType device, TypeOfArgument type_of>
void call_with_casts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(
        at::autocast::get_autocast_dispatch_key_from_device_type(device));
    const at::ScalarType autocast = get_autocast_dtype(device);
    const std::size_t first = stack->size() - op.schema().arguments().size();
    for (std::size_t i = first; i < stack->size(); ++i) {
        c10::IValue& value = (*stack)[i];
        if (value.isTensor()) {
            const at::Tensor tensor = value.toTensor();
            const at::ScalarType type = type_of(i - first, tensor.scalar_type(), autocast);
            value = at::autocast::cached_cast(type, tensor, device);
        } else if (value.isTensorList()) {
            const std::vector<at::Tensor> tensors = value.toTensorVector();
            const at::ScalarType type = type_of(i - first, at::kFloat, autocast);
            value = at::autocast::cached_cast(type, at::TensorList(tensors), device);
        }
    }
    op.callBoxed(stack);
}

template <c10::DeviceType device, TypeOfArgument type_of>
torch::CppFunction casting() {
    return torch::CppFunction::makeFromBoxedFunction<&call_with_casts<device, type_of>>();
}

template <c10::DeviceType device>
void add_kernels(torch::Library& library) {
    library.impl("layer_norm", casting<device, in_float>());
    library.impl("rms_norm", casting<device, in_float>());
    library.impl("residual_layer_norm", casting<device, in_float>());
    library.impl("residual_layer_norm_sum", casting<device, in_float>());
    library.impl("bias_dropout_residual", casting<device, in_float>());
    library.impl("bias_activation", casting<device, in_autocast_type>());
    library.impl("bias_activation_linear", casting<device, in_autocast_type>());
    library.impl("bias_heads", casting<device, in_autocast_type>());
    library.impl("substation_layer", casting<device, in_autocast_type>());
    library.impl("bias_gelu", casting<device, in_autocast_type>());
    library.impl("gelu_linear", casting<device, in_autocast_type>());
    library.impl("attention_core", casting<device, of_attention_core>());
}

}  // namespace

TORCH_LIBRARY_IMPL(tempo, AutocastCPU, m) { add_kernels<at::kCPU>(m); }
TORCH_LIBRARY_IMPL(tempo, AutocastCUDA, m) { add_kernels<at::kCUDA>(m); }

}  // namespace models::ops
