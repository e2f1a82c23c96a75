#pragma once

#include "kernels/column_passes.h"
#include "models/ops/attention_core_kernels.h"
#include "models/ops/residual_layer_norm_kernels.h"

#include <string_view>

/// The passes of kernels/column_passes.h and Substation's two passes with LayerNorm, on tensors,
/// without autograd.
namespace models::ops {

/// "none", "relu", "gelu" or "tanh_gelu".
inline kernels::Activation parse_activation(std::string_view name) {
    if (name == "none") return kernels::Activation::kNone;
    if (name == "relu") return kernels::Activation::kRelu;
    if (name == "gelu") return kernels::Activation::kGelu;
    if (name == "tanh_gelu") return kernels::Activation::kTanhGelu;
    TORCH_CHECK(false, "tempo: activation is '", name, "'; expected none, relu, gelu or tanh_gelu");
}

/// As run_with_partial_sums, with one sum, which is returned, [C].
template <typename Device, typename MakeArgs>
Tensor with_column_sum(const Tensor& rows, const MakeArgs& make_args) {
    Tensor sum = at::empty_symint({rows.sym_size(-1)}, rows.options());
    run_with_partial_sums<Device>(rows, sum, Tensor(), make_args);
    return sum;
}

// ---- bias, activation, dropout, residual -------------------------------------------------------

/// residual + dropout(act(x + bias)), x + bias (empty unless asked for) and the keep mask (empty
/// without dropout).
template <typename Device>
ThreeTensors bias_dropout_forward(const Tensor& x, const MaybeTensor& bias,
                                  const MaybeTensor& residual, std::string_view activation,
                                  bool with_biased, double p, std::string_view masks,
                                  c10::SymIntArrayRef key) {
    check_rows(x, "x");
    const DropoutCall call = residual_dropout_call(p, masks, key);
    if (p > 0) check_drawable(x, "x");
    const Tensor added = checked_parameter(bias, "bias", x);
    const Tensor source = x.contiguous();
    Tensor stream;
    if (residual) {
        check_like(*residual, "residual", x, "x");
        stream = residual->contiguous();
    }
    Tensor keep_mask = empty_mask(source, call.mask_kind);
    Tensor biased = empty_like_if(with_biased, source);
    Tensor y = at::empty_like(source);
    if constexpr (Device::kComputes) {
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::BiasDropoutForwardArgs<T>{.x = const_pointer<T>(source),
                                                   .bias = pointer_or_null<T>(added),
                                                   .residual = pointer_or_null<T>(stream),
                                                   .biased = pointer_if_any<T>(biased),
                                                   .y = pointer<T>(y),
                                                   .mask = mask_pointer(keep_mask),
                                                   .mask_kind = call.mask_kind,
                                                   .dropout_p = call.p,
                                                   .key = kernel_key(call),
                                                   .activation = parse_activation(activation),
                                                   .num_columns = source.size(-1)},
                source.numel() / source.size(-1));
        });
    }
    return {y, biased, keep_mask};
}

/// dx and dbias. `x` is what forward got, with its bias, or x + bias and no bias; none without an
/// activation.
template <typename Device>
TwoTensors bias_dropout_backward(const Tensor& dy, const MaybeTensor& x, const MaybeTensor& bias,
                                 const Tensor& keep_mask, std::string_view activation, double p,
                                 std::string_view masks, c10::SymIntArrayRef key) {
    check_rows(dy, "dy");
    const DropoutCall call = residual_dropout_call(p, masks, key);
    if (p > 0) check_mask(keep_mask, "keep_mask", dy, call.mask_kind);
    const Tensor upstream = dy.contiguous();
    const Tensor added = checked_parameter(bias, "bias", dy);
    Tensor source;
    if (parse_activation(activation) != kernels::Activation::kNone) {
        TORCH_CHECK(x, "tempo: the activation '", activation, "' needs x");
        check_like(*x, "x", dy, "dy");
        source = x->contiguous();
    }
    Tensor dx = at::empty_like(upstream);
    const Tensor dbias = with_column_sum<Device>(upstream, [&]<typename T>(T) {
        return kernels::BiasDropoutBackwardArgs<T>{.dy = const_pointer<T>(upstream),
                                                   .x = pointer_or_null<T>(source),
                                                   .bias = pointer_or_null<T>(added),
                                                   .mask = mask_pointer(keep_mask),
                                                   .dx = pointer<T>(dx),
                                                   .mask_kind = call.mask_kind,
                                                   .dropout_p = call.p,
                                                   .key = kernel_key(call),
                                                   .activation = parse_activation(activation),
                                                   .num_columns = upstream.size(-1)};
    });
    return {dx, dbias};
}

/// The sums of the columns: the gradient of a bias.
template <typename Device>
Tensor column_sum(const Tensor& x) {
    check_rows(x, "x");
    const Tensor source = x.contiguous();
    return with_column_sum<Device>(source, [&]<typename T>(T) {
        return kernels::BiasDropoutBackwardArgs<T>{.dy = const_pointer<T>(source),
                                                   .num_columns = source.size(-1)};
    });
}

// ---- heads -----------------------------------------------------------------------------------

/// Query, key and value [B*A, S, D] from x [B, S, 3H], the output of one GEMM without its bias.
template <typename Device>
ThreeTensors bias_heads_forward(const Tensor& x, const MaybeTensor& bias, int64_t num_heads) {
    check_floating(x, "x");
    TORCH_CHECK(
        x.dim() == 3 && num_heads > 0 && x.sym_size(2) % (kernels::kHeadParts * num_heads) == 0,
        "tempo: x has shape ", x.sym_sizes(), "; expected [batch, tokens, 3 * ", num_heads,
        " * head_dim]");
    const Tensor added = checked_parameter(bias, "bias", x);
    const Tensor source = x.contiguous();
    const c10::SymInt head_dim = x.sym_size(2) / (kernels::kHeadParts * num_heads);
    const auto heads = [&] {
        return at::empty_symint({x.sym_size(0) * num_heads, x.sym_size(1), head_dim},
                                source.options());
    };
    Tensor query = heads(), key = heads(), value = heads();
    if constexpr (Device::kComputes) {
        with_kernel_type(source, [&]<typename T>(T) {
            Device::run(
                kernels::BiasHeadsForwardArgs<T>{
                    .x = const_pointer<T>(source),
                    .bias = pointer_or_null<T>(added),
                    .heads = {pointer<T>(query), pointer<T>(key), pointer<T>(value)},
                    .shape = {source.size(1), num_heads, query.size(2)}},
                source.size(0) * source.size(1));
        });
    }
    return {query, key, value};
}

/// dx [B, S, 3H] and dbias [3H].
template <typename Device>
TwoTensors bias_heads_backward(const Tensor& dquery, const Tensor& dkey, const Tensor& dvalue,
                               int64_t num_heads) {
    check_scores(dquery, "dquery");
    check_like(dkey, "dkey", dquery, "dquery");
    check_like(dvalue, "dvalue", dquery, "dquery");
    TORCH_CHECK(num_heads > 0 && dquery.sym_size(0) % num_heads == 0, "tempo: num_heads is ",
                num_heads, "; expected a divisor of the first dimension of dquery, ",
                dquery.sym_size(0));
    const Tensor query = dquery.contiguous(), key = dkey.contiguous(), value = dvalue.contiguous();
    Tensor dx = at::empty_symint({query.sym_size(0) / num_heads, query.sym_size(1),
                                  query.sym_size(2) * (kernels::kHeadParts * num_heads)},
                                 query.options());
    const Tensor dbias = with_column_sum<Device>(dx, [&]<typename T>(T) {
        return kernels::BiasHeadsBackwardArgs<T>{
            .dheads = {const_pointer<T>(query), const_pointer<T>(key), const_pointer<T>(value)},
            .dx = pointer<T>(dx),
            .shape = {query.size(1), num_heads, query.size(2)}};
    });
    return {dx, dbias};
}

// ---- LayerNorm in two passes -------------------------------------------------------------------

/// y, x̂, sum - mean, rstd and the keep mask of LayerNorm(sum), sum = residual + dropout(x + bias);
/// x + bias is written to `biased`, which may be x.
template <typename Device>
FiveTensors bias_residual_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                       const Tensor& gamma, const Tensor& beta, Tensor& biased,
                                       double p, std::string_view masks, c10::SymIntArrayRef key,
                                       double eps) {
    check_rows(x, "x");
    check_like(residual, "residual", x, "x");
    check_like(biased, "biased", x, "x");
    TORCH_CHECK(x.is_contiguous() && biased.is_contiguous(),
                "tempo: x and biased must be contiguous");
    const DropoutCall call = residual_dropout_call(p, masks, key);
    if (p > 0) check_drawable(x, "x");
    const Tensor added = dense<Device>(checked_parameter(bias, "bias", x));
    const Tensor scale = dense<Device>(checked_parameter(gamma, "gamma", x));
    const Tensor shift = dense<Device>(checked_parameter(beta, "beta", x));
    const Tensor stream = dense<Device>(residual);
    Tensor keep_mask = empty_mask(x, call.mask_kind);
    Tensor y = at::empty_like(x), normalized = at::empty_like(x), centered = at::empty_like(x);
    Tensor rstd = empty_rstd(x);
    if constexpr (Device::kComputes) {
        with_kernel_type(x, [&]<typename T>(T) {
            Device::run(
                kernels::ResidualLayerNormForwardArgs<T>{.x = const_pointer<T>(x),
                                                         .bias = const_pointer<T>(added),
                                                         .residual = const_pointer<T>(stream),
                                                         .gamma = const_pointer<T>(scale),
                                                         .beta = const_pointer<T>(shift),
                                                         .y = pointer<T>(y),
                                                         .biased = pointer<T>(biased),
                                                         .normalized = pointer<T>(normalized),
                                                         .centered = pointer<T>(centered),
                                                         .rstd = pointer<kernels::StatOf<T>>(rstd),
                                                         .mask = mask_pointer(keep_mask),
                                                         .mask_kind = call.mask_kind,
                                                         .dropout_p = call.p,
                                                         .key = kernel_key(call),
                                                         .hidden_size = x.size(-1),
                                                         .eps = eps},
                rstd.numel());
        });
    }
    return {y, normalized, centered, rstd, keep_mask};
}

/// dx̂ = (dy + dresidual) gamma, dgamma, dbeta, and the sums of `dlinear` (empty without it).
template <typename Device>
FourTensors scale_shift_backward(const Tensor& dy, const MaybeTensor& dresidual,
                                 const Tensor& normalized, const Tensor& gamma,
                                 const MaybeTensor& dlinear) {
    check_rows(dy, "dy");
    check_like(normalized, "normalized", dy, "dy");
    if (dresidual) check_like(*dresidual, "dresidual", dy, "dy");
    if (dlinear) check_like(*dlinear, "dlinear", dy, "dy");
    const Tensor scale = checked_parameter(gamma, "gamma", dy);
    const auto contiguous = [](const MaybeTensor& t) { return t ? t->contiguous() : Tensor(); };
    const Tensor upstream = dy.contiguous(), kept = normalized.contiguous();
    const Tensor stream = contiguous(dresidual), linear = contiguous(dlinear);
    Tensor dnormalized = at::empty_like(upstream);
    Tensor dgamma = at::empty_like(scale), dbeta = at::empty_like(scale);
    Tensor dbias = dlinear ? at::empty_like(scale) : at::empty({0}, scale.options());
    if (dy.sym_numel().is_symbolic()) return {dnormalized, dgamma, dbeta, dbias};
    const int64_t size = dy.size(-1), num_rows = dy.numel() / size;
    const int64_t num_partials = Device::layer_norm_num_partials(num_rows);
    const at::TensorOptions stats = upstream.options().dtype(stat_type(upstream));
    const Tensor partials = at::empty({num_partials, 2, size}, stats);
    const Tensor bias_partials = dlinear ? at::empty_like(partials) : Tensor();
    if constexpr (Device::kComputes) {
        with_kernel_type(upstream, [&]<typename T>(T) {
            using Stat = kernels::StatOf<T>;
            Stat* const sums = pointer<Stat>(partials);
            Stat* const bias_sums = dlinear ? pointer<Stat>(bias_partials) : nullptr;
            Device::run(kernels::ScaleShiftBackwardArgs<T>{.dy = const_pointer<T>(upstream),
                                                           .dresidual = pointer_or_null<T>(stream),
                                                           .normalized = const_pointer<T>(kept),
                                                           .gamma = const_pointer<T>(scale),
                                                           .dlinear = pointer_or_null<T>(linear),
                                                           .dnormalized = pointer<T>(dnormalized),
                                                           .partials = sums,
                                                           .bias_partials = bias_sums,
                                                           .num_columns = size},
                        num_rows);
            const auto reduce = [&](const Stat* from, T* first, T* second) {
                Device::run(
                    kernels::LayerNormReduceArgs<T>{from, first, second, num_partials, size}, size);
            };
            reduce(sums, pointer<T>(dgamma), pointer<T>(dbeta));
            if (dlinear) reduce(bias_sums, pointer<T>(dbias), nullptr);
        });
    }
    return {dnormalized, dgamma, dbeta, dbias};
}

/// The gradients of the residual and of x from that of x̂.
template <typename Device>
TwoTensors residual_norm_backward(const Tensor& dnormalized, const Tensor& centered,
                                  const Tensor& rstd, const Tensor& keep_mask, double p,
                                  std::string_view masks, c10::SymIntArrayRef key) {
    check_rows(centered, "centered");
    check_like(dnormalized, "dnormalized", centered, "centered");
    check_rstd(rstd, centered);
    const DropoutCall call = residual_dropout_call(p, masks, key);
    check_mask(keep_mask, "keep_mask", centered, call.mask_kind);
    const Tensor kept = dense<Device>(centered);
    const Tensor upstream = dense<Device>(dnormalized);
    Tensor dresidual = at::empty_like(upstream), dx = at::empty_like(upstream);
    if constexpr (Device::kComputes) {
        with_kernel_type(kept, [&]<typename T>(T) {
            Device::run(
                kernels::ResidualLayerNormBackwardArgs<T>{
                    .dy = const_pointer<T>(upstream),
                    .saved = const_pointer<T>(kept),
                    .rstd = const_pointer<kernels::StatOf<T>>(rstd),
                    .mask = mask_pointer(keep_mask),
                    .dx = pointer<T>(dx),
                    .dresidual = pointer<T>(dresidual),
                    .save = kernels::LayerNormSave::kCentered,
                    .mask_kind = call.mask_kind,
                    .dropout_p = call.p,
                    .key = kernel_key(call),
                    .hidden_size = kept.size(-1)},
                rstd.numel());
        });
    }
    return {dresidual, dx};
}

}  // namespace models::ops
