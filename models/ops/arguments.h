#pragma once

#include "kernels/types.h"
#include "models/ops/tempo_ops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/FunctionRef.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

/// Converts torch tensors and schema arguments to raw kernel pointers and typed options, and back.
/// Checks name the argument. Sizes may be symbolic (torch.compile), so checks use sym_sizes(); only
/// code that computes needs numbers.
namespace models::ops {

// ---- tensors ---------------------------------------------------------------------------------

using MaybeTensor = std::optional<Tensor>;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// An argument of the schema type `Tensor?`: nullopt for an undefined tensor.
inline MaybeTensor given(const Tensor& tensor) {
    return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

/// Calls `run` with a value of the kernels' storage type for `tensor`.
template <typename Run>
void with_kernel_type(const Tensor& tensor, Run&& run) {
    switch (tensor.scalar_type()) {
        case at::kFloat:
            return run(float{});
        case at::kDouble:
            return run(double{});
        case at::kHalf:
            return run(kernels::Half{});
        case at::kBFloat16:
            return run(kernels::BFloat16{});
        default:
            TORCH_CHECK(false, "tempo: no kernel for dtype ", tensor.scalar_type());
    }
}

template <typename T>
const T* const_pointer(const Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
}
template <typename T>
const T* pointer_or_null(const Tensor& tensor) {
    return tensor.defined() ? const_pointer<T>(tensor) : nullptr;
}
template <typename T>
T* pointer(const Tensor& tensor) {
    return static_cast<T*>(tensor.mutable_data_ptr());
}

/// Tensors that may be float beside 16-bit T (kernels/types.h).
template <typename T>
bool is_float_beside(const Tensor& tensor) {
    return sizeof(T) == 2 && tensor.defined() && tensor.scalar_type() == at::kFloat;
}
template <typename T>
kernels::Source<T> source_or_null(const Tensor& tensor) {
    if (is_float_beside<T>(tensor)) return const_pointer<kernels::StatOf<T>>(tensor);
    return pointer_or_null<T>(tensor);
}
template <typename T>
kernels::Target<T> target_if_any(const Tensor& result) {
    if (result.numel() == 0) return nullptr;
    if (is_float_beside<T>(result)) return pointer<kernels::StatOf<T>>(result);
    return pointer<T>(result);
}

/// A result that not every call asks for: without a request it is empty [0], and null for the
/// kernel.
inline Tensor empty_like_if(bool wanted, const Tensor& like) {
    return wanted ? at::empty_like(like) : at::empty({0}, like.options());
}
template <typename T>
T* pointer_if_any(const Tensor& result) {
    return result.defined() && result.numel() > 0 ? pointer<T>(result) : nullptr;
}

/// Statistics are float, and double for double.
inline at::ScalarType stat_type(const Tensor& tensor) {
    return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// float, double, half or bfloat16, on a device whose kernels are loaded.
void check_floating(const Tensor& tensor, const char* argument);
void check_device(const Tensor& tensor, const char* argument, const Tensor& like);
/// `tensor` has the shape, dtype and device of `like`.
void check_like(const Tensor& tensor, const char* argument, const Tensor& like,
                const char* like_argument);
/// As check_like, but `tensor` may be float if `like` has 16 bits.
void check_like_or_float(const Tensor& tensor, const char* argument, const Tensor& like,
                         const char* like_argument);
/// Checks: floating-point, at least one dimension.
void check_rows(const Tensor& x, const char* argument);
/// The weight of a linear layer, [out, inputs], with the dtype and device of x.
void check_weight(const Tensor& weight, const char* argument, const c10::SymInt& inputs,
                  const Tensor& x);
/// The bias of a linear layer, [out], with the dtype and device of its weight.
void check_bias(const Tensor& bias, const char* argument, const Tensor& weight);
/// Checks gamma, beta or bias: [H], the last dimension of x, with x's dtype and device, or none.
/// Returns it contiguous, or undefined.
Tensor checked_parameter(const MaybeTensor& parameter, const char* argument, const Tensor& x);
/// The same for gamma or beta of a norm whose output has type `output`: they have it too, or are
/// float beside 16 bits.
Tensor checked_channels(const MaybeTensor& parameter, const char* argument, const Tensor& x,
                        at::ScalarType output);

// ---- masks -----------------------------------------------------------------------------------

/// An uninitialized mask for the elements of `like`: bool of its shape, uint8 [ceil(n/8)], its own
/// type and shape, or uint8 [0] if nothing is stored.
Tensor empty_mask(const Tensor& like, kernels::MaskKind kind);
/// Checks that `mask` is contiguous and has the shape and dtype of `empty_mask(like, kind)`.
void check_mask(const Tensor& mask, const char* argument, const Tensor& like,
                kernels::MaskKind kind);

/// Null if the mask is not stored.
inline uint8_t* mask_pointer(const Tensor& mask) { return pointer_if_any<uint8_t>(mask); }

/// "byte", "bit" or "philox", as in recipes, or "element".
kernels::MaskKind parse_mask_kind(std::string_view name);
std::string_view name_of(kernels::MaskKind kind);

// ---- schema arguments ------------------------------------------------------------------------

/// p, masks and key of a schema, checked. The key is symbolic if torch.compile traces a step that
/// counts up. Only code that draws asks for its numbers, through kernel_key.
struct DropoutCall {
    double p = 0;
    kernels::MaskKind mask_kind = kernels::MaskKind::kByte;
    std::array<c10::SymInt, 5> key;  // seed, rank, step, layer, site
};
DropoutCall dropout_call(double p, std::string_view masks, c10::SymIntArrayRef key);
kernels::DropoutKey kernel_key(const DropoutCall& call);
std::array<c10::SymInt, 5> key_array(const kernels::DropoutKey& key);
/// Errors: x has more elements than a key has numbers for (kernels::kMaxDrawnElements).
void check_drawable(const Tensor& x, const char* argument);

/// Autograd nodes carry a call from forward to backward as plain values, not as tensors.
void keep_call(torch::autograd::AutogradContext& ctx, const DropoutCall& call);
DropoutCall kept_call(const torch::autograd::AutogradContext& ctx);

// ---- calls -----------------------------------------------------------------------------------

/// A handle on `tempo::name` that calls through the dispatcher, so that each call is an op of its
/// own for profilers, CUDA and Meta. `Signature` is the signature of the registered function:
///     static const auto op = tempo_op<decltype(dropout_forward<Cpu>)>("tempo::dropout_forward");
template <typename Signature>
c10::TypedOperatorHandle<Signature> tempo_op(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// ---- gradients -------------------------------------------------------------------------------
//
// Tempo's gradients are computed from saved tensors by ops without autograd. A second derivative
// through them would lack their share without an error, so it is an error here.

/// Returns the gradients of `run` for the autograd node that is being evaluated. They may be used
/// but not differentiated: under create_graph=True, a derivative that reaches the inputs of `op` or
/// `upstream` through them is an error that names `op`.
torch::autograd::variable_list once_differentiable(
    const char* op, const torch::autograd::variable_list& upstream,
    c10::function_ref<torch::autograd::variable_list()> run);

}  // namespace models::ops
