#include <ATen/autocast_mode.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <vector>

// torch.ops.tempo under autocast. Kernels compute in float whatever their tensors hold, so softmax
// and norms keep 16 bits where torch's own ops go over to float: scores stay what the matrix
// multiplication wrote, and a norm writes autocast's dtype, which the linear layer after it saves
// too. gelu and dropout keep the dtype of their input.

namespace models::ops {
namespace {

/// The dtype to which tensor argument `index` of dtype `own` is cast.
using TypeOfArgument = at::ScalarType (*)(std::size_t index, at::ScalarType own,
                                          at::ScalarType autocast);

at::ScalarType in_float(std::size_t, at::ScalarType, at::ScalarType) { return at::kFloat; }
at::ScalarType in_autocast_type(std::size_t, at::ScalarType, at::ScalarType autocast) {
    return autocast;
}
/// Float or autocast's dtype, whichever it is: parameters, residual streams and masks.
at::ScalarType float_or_autocast_type(std::size_t, at::ScalarType own, at::ScalarType autocast) {
    return own == at::kFloat ? own : autocast;
}
/// scores, value, additive_mask: `value` is an input of a matrix multiplication.
at::ScalarType of_attention_core(std::size_t index, at::ScalarType own, at::ScalarType autocast) {
    return index == 1 ? autocast : float_or_autocast_type(index, own, autocast);
}
/// x, residual, gamma, beta: the output has the dtype of x.
at::ScalarType of_residual_layer_norm(std::size_t index, at::ScalarType own,
                                      at::ScalarType autocast) {
    return index == 0 ? autocast : float_or_autocast_type(index, own, autocast);
}

/// Argument `dtype` of an op that has one, unless the caller gave it or x is double.
void choose_output_type(const c10::FunctionSchema& schema, at::ScalarType type,
                        torch::jit::Stack* stack) {
    const std::size_t first = stack->size() - schema.arguments().size();
    const auto index = schema.argumentIndexWithName("dtype");
    if (!index || (*stack)[first].toTensor().scalar_type() == at::kDouble) return;
    c10::IValue& dtype = (*stack)[first + static_cast<std::size_t>(*index)];
    if (dtype.isNone()) dtype = type;
}

/// Casts the arguments and calls the op without autocast. Autograd records the casts.
template <c10::DeviceType device, TypeOfArgument type_of>
void call_with_casts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(
        at::autocast::get_autocast_dispatch_key_from_device_type(device));
    const at::ScalarType autocast = at::autocast::get_autocast_dtype(device);
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
    choose_output_type(op.schema(), autocast, stack);
    op.callBoxed(stack);
}

template <c10::DeviceType device, TypeOfArgument type_of>
torch::CppFunction casting() {
    return torch::CppFunction::makeFromBoxedFunction<&call_with_casts<device, type_of>>();
}

template <c10::DeviceType device>
void add_kernels(torch::Library& library) {
    library.impl("layer_norm", casting<device, float_or_autocast_type>());
    library.impl("rms_norm", casting<device, float_or_autocast_type>());
    library.impl("residual_layer_norm", casting<device, of_residual_layer_norm>());
    library.impl("residual_layer_norm_sum", casting<device, of_residual_layer_norm>());
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
