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

/// A tensor argument of an op.
struct Argument {
    const c10::IValue* all;  // the op's arguments; those from this one on are not cast yet
    std::size_t index;
    at::ScalarType own;
    at::ScalarType autocast;
};
/// The dtype to which an argument is cast.
using TypeOfArgument = at::ScalarType (*)(const Argument&);

at::ScalarType in_autocast_type(const Argument& argument) { return argument.autocast; }
/// Float or autocast's dtype, whichever it is: parameters, residual streams and masks.
at::ScalarType float_or_autocast_type(const Argument& argument) {
    return argument.own == at::kFloat ? at::kFloat : argument.autocast;
}
/// scores, value, additive_mask: `value` is an input of a matrix multiplication.
at::ScalarType of_attention_core(const Argument& argument) {
    return argument.index == 1 ? argument.autocast : float_or_autocast_type(argument);
}
/// x, residual, gamma, beta: the output has the dtype of x.
at::ScalarType of_residual_layer_norm(const Argument& argument) {
    return argument.index == 0 ? argument.autocast : float_or_autocast_type(argument);
}
/// x, bias, residual: all have the dtype of the residual, as torch's sum of a linear layer's 16-bit
/// output and the residual has. A float stream stays float, one of 16 bits keeps to 16 bits.
at::ScalarType of_bias_dropout_residual(const Argument& argument) {
    const at::ScalarType stream = argument.all[2].toTensor().scalar_type();
    return stream == at::kFloat ? stream : argument.autocast;
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
    const std::size_t count = op.schema().arguments().size();
    c10::IValue* const all = stack->data() + (stack->size() - count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto type_for = [&](at::ScalarType own) { return type_of({all, i, own, autocast}); };
        if (all[i].isTensor()) {
            const at::Tensor tensor = all[i].toTensor();
            all[i] = at::autocast::cached_cast(type_for(tensor.scalar_type()), tensor, device);
        } else if (all[i].isTensorList()) {
            const std::vector<at::Tensor> tensors = all[i].toTensorVector();
            all[i] =
                at::autocast::cached_cast(type_for(at::kFloat), at::TensorList(tensors), device);
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
    library.impl("bias_dropout_residual", casting<device, of_bias_dropout_residual>());
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
