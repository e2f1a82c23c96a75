#pragma once

#include "models/ops/arguments.h"
#include "models/ops/devices.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <limits>

/// Softmax and dropout of attention and the ops of its backward, on tensors, without autograd.
namespace models::ops {

inline double lowest_of(at::ScalarType type) {
    if (type == at::kHalf) return std::numeric_limits<c10::Half>::lowest();
    if (type == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::lowest();
    if (type == at::kFloat) return std::numeric_limits<float>::lowest();
    return std::numeric_limits<double>::lowest();
}

/// The lowest number of a type of wider range would be -inf here, and a row of nothing else NaN: it
/// becomes the lowest number of this type. A bfloat16 mask is clamped in float, because bfloat16
/// rounds the lowest half to a number that half cannot hold.
inline Tensor in_type_of_scores(const Tensor& mask, at::ScalarType type) {
    const double lowest = lowest_of(type);
    if (lowest_of(mask.scalar_type()) >= lowest) return mask.to(type);
    const Tensor exact = mask.scalar_type() == at::kBFloat16 ? mask.to(at::kFloat) : mask;
    return exact.clamp_min(lowest).to(type);
}

/// Backward gives the mask no gradient: an error is better than a missing one.
inline void check_is_constant(const MaybeTensor& mask) {
    TORCH_CHECK(!mask || !mask->defined() || !mask->requires_grad() || !at::GradMode::is_enabled(),
                "tempo: additive_mask requires a gradient, which this op does not compute; add the "
                "mask to the scores instead");
}

/// Checks the mask: [B, S] of any floating-point dtype, for B sequences of `num_heads` heads each.
/// Returns it in the dtype of scores, or undefined.
inline Tensor checked_additive_mask(const MaybeTensor& mask, const Tensor& scores,
                                    int64_t num_heads) {
    TORCH_CHECK(num_heads > 0 && scores.sym_size(0) % num_heads == 0, "tempo: num_heads is ",
                num_heads, "; expected a divisor of the first dimension of scores, ",
                scores.sym_size(0));
    if (!mask || !mask->defined()) return {};
    TORCH_CHECK(mask->dim() == 2 && mask->sym_size(0) == scores.sym_size(0) / num_heads &&
                    mask->sym_size(1) == scores.sym_size(2),
                "tempo: additive_mask has shape ", mask->sym_sizes(), "; expected [",
                scores.sym_size(0) / num_heads, ", ", scores.sym_size(2), "]");
    check_floating(*mask, "additive_mask");
    check_device(*mask, "additive_mask", scores);
    return in_type_of_scores(*mask, scores.scalar_type()).contiguous();
}

inline void check_scores(const Tensor& scores, const char* argument) {
    check_floating(scores, argument);
    TORCH_CHECK(scores.dim() == 3, "tempo: ", argument, " has shape ", scores.sym_sizes(),
                "; expected [batch * heads, queries, keys]");
}

/// Probabilities, dropped probabilities (empty without dropout) and keep mask (empty without
/// dropout).
template <typename Device>
ThreeTensors softmax_dropout_forward(const Tensor& scores, const MaybeTensor& additive_mask,
                                     double scale, bool causal, int64_t num_heads, double p,
                                     std::string_view masks, c10::SymIntArrayRef key) {
    check_scores(scores, "scores");
    const DropoutCall call = dropout_call(p, masks, key);
    const Tensor mask = checked_additive_mask(additive_mask, scores, num_heads);
    const Tensor source = scores.contiguous();
    const bool drops = call.p > 0;
    if (drops) check_drawable(scores, "scores");
    Tensor probs = at::empty_like(source);
    Tensor keep_mask = drops ? empty_mask(source, call.mask_kind)
                             : at::empty({0}, source.options().dtype(at::kByte));
    Tensor dropped = empty_like_if(drops, source);
    if constexpr (Device::kComputes) {
        const int64_t num_queries = source.size(1), num_keys = source.size(2);
        if (source.numel() == 0) return {probs, dropped, keep_mask};
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::SoftmaxDropoutForwardArgs<T>{.scores = const_pointer<T>(source),
                                                      .additive_mask = pointer_or_null<T>(mask),
                                                      .probs = pointer<T>(probs),
                                                      .dropped = pointer_if_any<T>(dropped),
                                                      .mask = mask_pointer(keep_mask),
                                                      .mask_kind = call.mask_kind,
                                                      .dropout_p = call.p,
                                                      .key = kernel_key(call),
                                                      .scale = scale,
                                                      .num_keys = num_keys,
                                                      .num_queries = num_queries,
                                                      .rows_per_mask = num_heads * num_queries,
                                                      .causal = causal},
                source.size(0) * num_queries);
        });
    }
    return {probs, dropped, keep_mask};
}

/// probs * keep / q, with the same bits as in forward.
template <typename Device>
Tensor softmax_dropout_recompute(const Tensor& probs, const Tensor& keep_mask, double p,
                                 std::string_view masks, c10::SymIntArrayRef key) {
    check_scores(probs, "probs");
    const DropoutCall call = dropout_call(p, masks, key);
    check_mask(keep_mask, "keep_mask", probs, call.mask_kind);
    const Tensor source = probs.contiguous();
    Tensor dropped = at::empty_like(source);
    if constexpr (Device::kComputes) {
        if (source.numel() == 0) return dropped;
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(kernels::RecomputeDroppedArgs<T>{.probs = const_pointer<T>(source),
                                                         .dropped = pointer<T>(dropped),
                                                         .mask = mask_pointer(keep_mask),
                                                         .mask_kind = call.mask_kind,
                                                         .dropout_p = call.p,
                                                         .key = kernel_key(call),
                                                         .num_keys = source.size(2)},
                        source.size(0) * source.size(1));
        });
    }
    return dropped;
}

/// Overwrites `ddropped` with dscores: backward needs no third [B*A, S, S] tensor.
template <typename Device>
void softmax_dropout_backward_(Tensor& ddropped, const Tensor& probs, const Tensor& keep_mask,
                               double scale, double p, std::string_view masks,
                               c10::SymIntArrayRef key) {
    check_scores(probs, "probs");
    check_like(ddropped, "ddropped", probs, "probs");
    TORCH_CHECK(ddropped.is_contiguous(), "tempo: ddropped is not contiguous");
    const DropoutCall call = dropout_call(p, masks, key);
    if (call.p > 0) check_mask(keep_mask, "keep_mask", probs, call.mask_kind);
    const Tensor source = probs.contiguous();
    if constexpr (Device::kComputes) {
        if (source.numel() == 0) return;
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::SoftmaxDropoutBackwardArgs<T>{.ddropped = const_pointer<T>(ddropped),
                                                       .probs = const_pointer<T>(source),
                                                       .mask = mask_pointer(keep_mask),
                                                       .dscores = pointer<T>(ddropped),
                                                       .mask_kind = call.mask_kind,
                                                       .dropout_p = call.p,
                                                       .key = kernel_key(call),
                                                       .scale = scale,
                                                       .num_keys = source.size(2)},
                source.size(0) * source.size(1));
        });
    }
}

}  // namespace models::ops
