#pragma once

#include "models/ops/inplace_layer_norm_kernels.h"

#include <tuple>

/// Dropout, residual and LayerNorm in one pass, on tensors, without autograd.
namespace models::ops {

using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using FiveTensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

/// Without dropout there is no mask to store.
inline DropoutCall residual_dropout_call(double p, std::string_view masks,
                                         c10::SymIntArrayRef key) {
    DropoutCall call = dropout_call(p, masks, key);
    if (p == 0) call.mask_kind = kernels::MaskKind::kNone;
    return call;
}

/// Returns the tensor contiguous and aligned for the kernel; a view may start anywhere.
template <typename Device>
Tensor dense(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const Tensor contiguous = tensor.contiguous();
    if constexpr (Device::kComputes) {
        const auto address = reinterpret_cast<uintptr_t>(contiguous.const_data_ptr());
        if (address % Device::kAlignment != 0) return contiguous.clone();
    }
    return contiguous;
}

/// y, sum (empty unless asked for), x̂ (empty unless backward needs it), rstd [rows] and the keep
/// mask.
template <typename Device>
FiveTensors residual_layer_norm_forward(const Tensor& x, const Tensor& residual,
                                        const MaybeTensor& gamma, const MaybeTensor& beta, double p,
                                        std::string_view masks, c10::SymIntArrayRef key, double eps,
                                        std::string_view save, bool with_sum) {
    check_rows(x, "x");
    check_like_or_float(residual, "residual", x, "x");
    const NormParameters affine(gamma, beta, x, x.scalar_type());
    const Tensor scale = dense<Device>(affine.gamma), shift = dense<Device>(affine.beta);
    const DropoutCall call = residual_dropout_call(p, masks, key);
    if (p > 0) check_drawable(x, "x");
    const Tensor source = dense<Device>(x);
    const Tensor stream = dense<Device>(residual);
    const bool keep_normalized = parse_save(save) == kernels::LayerNormSave::kNormalized;
    Tensor keep_mask = empty_mask(source, call.mask_kind);
    Tensor y = at::empty_like(source);
    const bool needs_sum = Device::kSumsInMemory && stream.scalar_type() != source.scalar_type();
    Tensor sum = empty_like_if(with_sum || needs_sum, stream);
    Tensor normalized = empty_like_if(keep_normalized, source);
    Tensor rstd = empty_rstd(source);
    if constexpr (Device::kComputes) {
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::ResidualLayerNormForwardArgs<T>{
                    .x = const_pointer<T>(source),
                    .residual = source_or_null<T>(stream),
                    .gamma = source_or_null<T>(scale),
                    .beta = source_or_null<T>(shift),
                    .y = pointer<T>(y),
                    .sum = target_if_any<T>(sum),
                    .normalized = pointer_if_any<T>(normalized),
                    .rstd = pointer<kernels::StatOf<T>>(rstd),
                    .mask = mask_pointer(keep_mask),
                    .mask_kind = call.mask_kind,
                    .dropout_p = call.p,
                    .key = kernel_key(call),
                    .hidden_size = source.size(-1),
                    .eps = eps},
                rstd.numel());
        });
    }
    if (!with_sum) sum = empty_like_if(false, stream);
    return {y, sum, normalized, rstd, keep_mask};
}

/// dx, dresidual, dgamma and dbeta; the last two are empty [0] without the parameter. dsum is the
/// gradient of the sum, or none; `dtype` the type of both, or none for that of dy.
template <typename Device>
FourTensors residual_layer_norm_backward(const Tensor& dy, const MaybeTensor& dsum,
                                         const Tensor& saved, const MaybeTensor& gamma,
                                         const MaybeTensor& beta, const Tensor& rstd,
                                         const Tensor& keep_mask, double p, std::string_view masks,
                                         c10::SymIntArrayRef key, std::string_view save,
                                         MaybeType dtype) {
    check_rows(saved, "saved");
    check_like(dy, "dy", saved, "saved");
    if (dsum) check_like_or_float(*dsum, "dsum", saved, "saved");
    const NormParameters affine(gamma, beta, saved, saved.scalar_type());
    const Tensor scale = dense<Device>(affine.gamma), shift = dense<Device>(affine.beta);
    check_rstd(rstd, saved);
    const DropoutCall call = residual_dropout_call(p, masks, key);
    check_mask(keep_mask, "keep_mask", saved, call.mask_kind);
    const Tensor kept = dense<Device>(saved);
    const Tensor upstream = dense<Device>(dy);
    const Tensor stream = dense<Device>(dsum.value_or(Tensor()));
    Tensor dx = at::empty_like(upstream);
    Tensor dresidual = empty_input_gradient(upstream, dtype);
    Tensor dgamma = empty_gradient(scale, kept);
    Tensor dbeta = empty_gradient(shift, kept);
    run_with_partial_sums<Device>(kept, dgamma, dbeta, [&]<typename T>(T) {
        return kernels::ResidualLayerNormBackwardArgs<T>{
            .dy = const_pointer<T>(upstream),
            .dsum = source_or_null<T>(stream),
            .saved = const_pointer<T>(kept),
            .gamma = source_or_null<T>(scale),
            .beta = source_or_null<T>(shift),
            .rstd = const_pointer<kernels::StatOf<T>>(rstd),
            .mask = mask_pointer(keep_mask),
            .dx = pointer<T>(dx),
            .dresidual = target_if_any<T>(dresidual),
            .save = parse_save(save),
            .mask_kind = call.mask_kind,
            .dropout_p = call.p,
            .key = kernel_key(call),
            .hidden_size = kept.size(-1)};
    });
    return {dx, dresidual, dgamma, dbeta};
}

}  // namespace models::ops
