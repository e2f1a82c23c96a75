#pragma once

#include "models/ops/arguments.h"
#include "models/ops/devices.h"

#include <ATen/ops/empty_like.h>

/// Dropout on tensors, without autograd.
namespace models::ops {

/// x * keep / q and the mask.
template <typename Device>
TwoTensors dropout_forward(const Tensor& x, double p, std::string_view masks,
                           c10::SymIntArrayRef key) {
    check_floating(x, "x");
    check_drawable(x, "x");
    const DropoutCall call = dropout_call(p, masks, key);
    const Tensor source = x.contiguous();
    // at::native_dropout allocates the mask before the output; so do we.
    Tensor keep_mask = empty_mask(source, call.mask_kind);
    Tensor y = at::empty_like(source);
    if constexpr (Device::kComputes) {
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(kernels::DropoutForwardArgs<T>{.x = const_pointer<T>(source),
                                                       .y = pointer<T>(y),
                                                       .mask = mask_pointer(keep_mask),
                                                       .mask_kind = call.mask_kind,
                                                       .dropout_p = call.p,
                                                       .key = kernel_key(call)},
                        source.numel());
        });
    }
    return {y, keep_mask};
}

template <typename Device>
Tensor dropout_backward(const Tensor& dy, const Tensor& keep_mask, double p, std::string_view masks,
                        c10::SymIntArrayRef key) {
    check_floating(dy, "dy");
    const DropoutCall call = dropout_call(p, masks, key);
    check_mask(keep_mask, "keep_mask", dy, call.mask_kind);
    const Tensor upstream = dy.contiguous();
    Tensor dx = at::empty_like(upstream);
    if constexpr (Device::kComputes) {
        with_kernel_type(upstream, [&]<typename T>(T) {
            Device::run(kernels::DropoutBackwardArgs<T>{.dy = const_pointer<T>(upstream),
                                                        .dx = pointer<T>(dx),
                                                        .mask = mask_pointer(keep_mask),
                                                        .mask_kind = call.mask_kind,
                                                        .dropout_p = call.p,
                                                        .key = kernel_key(call)},
                        upstream.numel());
        });
    }
    return dx;
}

}  // namespace models::ops
