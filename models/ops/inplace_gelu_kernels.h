#pragma once

#include "models/ops/arguments.h"
#include "models/ops/devices.h"

#include <ATen/ops/empty_like.h>

/// GELU whose backward needs the output and a branch mask, on tensors, without autograd.
namespace models::ops {

inline kernels::GeluKind gelu_kind(bool tanh) {
    return tanh ? kernels::GeluKind::kTanh : kernels::GeluKind::kErf;
}

/// A branch mask cannot be drawn again, so it takes one bit per element if dropout masks are not
/// stored.
inline kernels::MaskKind branch_mask_kind(std::string_view masks) {
    const kernels::MaskKind kind = parse_mask_kind(masks);
    TORCH_CHECK(kind != kernels::MaskKind::kElement,
                "tempo: masks is 'element'; expected byte, bit or philox for GELU's branches");
    return kind == kernels::MaskKind::kNone ? kernels::MaskKind::kBit : kind;
}

/// gelu(x + bias) and the branch mask; bias [size of the last dimension], contiguous, or undefined.
template <typename Device>
TwoTensors gelu_of_sum(const Tensor& x, const Tensor& bias, bool tanh, std::string_view masks) {
    const kernels::MaskKind kind = branch_mask_kind(masks);
    const Tensor source = x.contiguous();
    Tensor y = at::empty_like(source);
    Tensor branch_mask = empty_mask(source, kind);
    if constexpr (Device::kComputes) {
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::InplaceGeluForwardArgs<T>{.x = const_pointer<T>(source),
                                                   .y = pointer<T>(y),
                                                   .mask = mask_pointer(branch_mask),
                                                   .mask_kind = kind,
                                                   .kind = gelu_kind(tanh),
                                                   .bias = pointer_or_null<T>(bias),
                                                   .bias_size = bias.defined() ? bias.numel() : 0},
                source.numel());
        });
    }
    return {y, branch_mask};
}

template <typename Device>
TwoTensors gelu_forward(const Tensor& x, bool tanh, std::string_view masks) {
    check_floating(x, "x");
    return gelu_of_sum<Device>(x, Tensor(), tanh, masks);
}

template <typename Device>
TwoTensors bias_gelu_forward(const Tensor& x, const Tensor& bias, bool tanh,
                             std::string_view masks) {
    check_rows(x, "x");
    return gelu_of_sum<Device>(x, checked_parameter(bias, "bias", x), tanh, masks);
}

template <typename Device>
Tensor gelu_backward(const Tensor& dy, const Tensor& y, const Tensor& branch_mask, bool tanh,
                     std::string_view masks) {
    check_floating(y, "y");
    check_like(dy, "dy", y, "y");
    const kernels::MaskKind kind = branch_mask_kind(masks);
    check_mask(branch_mask, "branch_mask", y, kind);
    const Tensor output = y.contiguous();
    const Tensor upstream = dy.contiguous();
    Tensor dx = at::empty_like(upstream);
    if constexpr (Device::kComputes) {
        with_kernel_type(upstream, [&]<typename T>(T) {
            Device::run(kernels::InplaceGeluBackwardArgs<T>{.dy = const_pointer<T>(upstream),
                                                            .y = const_pointer<T>(output),
                                                            .mask = mask_pointer(branch_mask),
                                                            .dx = pointer<T>(dx),
                                                            .mask_kind = kind,
                                                            .kind = gelu_kind(tanh)},
                        upstream.numel());
        });
    }
    return dx;
}

}  // namespace models::ops
