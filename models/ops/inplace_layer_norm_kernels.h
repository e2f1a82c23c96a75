#pragma once

#include "models/ops/arguments.h"
#include "models/ops/devices.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

/// LayerNorm and RMSNorm whose backward needs the output (or x̂) and rstd, on tensors, without
/// autograd.
namespace models::ops {

using MaybeType = std::optional<at::ScalarType>;

inline kernels::LayerNormSave parse_save(std::string_view save) {
    if (save == "output") return kernels::LayerNormSave::kOutput;
    if (save == "normalized") return kernels::LayerNormSave::kNormalized;
    TORCH_CHECK(false, "tempo: save is '", save, "'; expected output or normalized");
}

/// Checks `rstd`: one statistic per row, as forward returned it beside `saved`.
inline void check_rstd(const Tensor& rstd, const Tensor& saved) {
    TORCH_CHECK(rstd.sym_numel() == saved.sym_numel() / saved.sym_size(-1) &&
                    rstd.scalar_type() == stat_type(saved) && rstd.is_contiguous(),
                "tempo: rstd has ", rstd.sym_numel(), " elements of ", rstd.scalar_type(),
                "; expected one contiguous ", stat_type(saved), " per row of saved");
    check_device(rstd, "rstd", saved);
}

/// One statistic per row of x.
inline Tensor empty_rstd(const Tensor& x) {
    return at::empty_symint({x.sym_numel() / x.sym_size(-1)}, x.options().dtype(stat_type(x)));
}

/// The gradient of an input of type `dtype`, or of that of `upstream`.
inline Tensor empty_input_gradient(const Tensor& upstream, MaybeType dtype) {
    return at::empty_like(upstream,
                          upstream.options().dtype(dtype.value_or(upstream.scalar_type())));
}

/// dgamma or dbeta; empty [0] without the parameter.
inline Tensor empty_gradient(const Tensor& parameter, const Tensor& like) {
    return parameter.defined() ? at::empty_like(parameter) : at::empty({0}, like.options());
}

/// Runs a backward over all rows of `rows` that writes two partial sums of each column, and then
/// their reduction to `first` and `second`, such as dgamma and dbeta; either may be empty.
/// `make_args(T{})` returns the kernel's arguments for tensors of T.
template <typename Device, typename MakeArgs>
void run_with_partial_sums(const Tensor& rows, const Tensor& first, const Tensor& second,
                           const MakeArgs& make_args) {
    if (rows.sym_numel().is_symbolic()) return;  // scratch needs a number
    const int64_t size = rows.size(-1), num_rows = rows.numel() / size;
    const int64_t num_partials = Device::layer_norm_num_partials(num_rows);
    const Tensor partials =
        at::empty({num_partials, 2, size}, rows.options().dtype(stat_type(rows)));
    if constexpr (Device::kComputes) {
        with_kernel_type(rows, [&]<typename T>(T type) {
            auto args = make_args(type);
            args.partials = pointer<kernels::StatOf<T>>(partials);
            Device::run(args, num_rows);
        });
        // Sums have the type of their parameters, which may be float beside 16 bits.
        with_kernel_type(first.numel() > 0 ? first : second, [&]<typename T>(T) {
            Device::run(
                kernels::LayerNormReduceArgs<T>{
                    .partials = const_pointer<kernels::StatOf<T>>(partials),
                    .dgamma = pointer_if_any<T>(first),
                    .dbeta = pointer_if_any<T>(second),
                    .num_partials = num_partials,
                    .hidden_size = size},
                size);
        });
    }
}

/// gamma and beta, checked.
struct NormParameters {
    NormParameters(const MaybeTensor& from_gamma, const MaybeTensor& from_beta, const Tensor& x,
                   at::ScalarType output)
        : gamma(checked_channels(from_gamma, "gamma", x, output)),
          beta(checked_channels(from_beta, "beta", x, output)) {
        TORCH_CHECK(
            !gamma.defined() || !beta.defined() || gamma.scalar_type() == beta.scalar_type(),
            "tempo: beta has dtype ", beta.scalar_type(), "; expected the same as gamma, ",
            gamma.scalar_type());
    }

    Tensor gamma, beta;  // undefined: 1 and 0
};

/// The type of a norm's output: `dtype`, or that of x. It may have 16 bits beside a float x.
inline at::ScalarType output_type(const Tensor& x, MaybeType dtype) {
    const at::ScalarType type = dtype.value_or(x.scalar_type());
    const bool is_narrower =
        x.scalar_type() == at::kFloat && (type == at::kHalf || type == at::kBFloat16);
    TORCH_CHECK(type == x.scalar_type() || is_narrower, "tempo: dtype is ", type,
                "; expected the same as x, ", x.scalar_type(), ", or half or bfloat16 for float x");
    return type;
}

/// LayerNorm; without `subtract_mean` RMSNorm. `dtype` is that of y.
template <typename Device>
ThreeTensors norm_forward(const Tensor& x, const MaybeTensor& gamma, const MaybeTensor& beta,
                          double eps, std::string_view save, MaybeType dtype, bool subtract_mean) {
    check_rows(x, "x");
    const at::ScalarType type = output_type(x, dtype);
    const NormParameters affine(gamma, beta, x, type);
    const Tensor source = x.contiguous();
    const bool keep_normalized = parse_save(save) == kernels::LayerNormSave::kNormalized;
    Tensor y = at::empty_like(source, source.options().dtype(type));
    Tensor normalized = empty_like_if(keep_normalized, y);
    Tensor rstd = empty_rstd(source);
    if constexpr (Device::kComputes) {
        with_kernel_type(y, [&]<typename T>(T) {
            Device::run(
                kernels::LayerNormForwardArgs<T>{.x = source_or_null<T>(source),
                                                 .gamma = source_or_null<T>(affine.gamma),
                                                 .beta = source_or_null<T>(affine.beta),
                                                 .y = pointer<T>(y),
                                                 .normalized = pointer_if_any<T>(normalized),
                                                 .rstd = pointer<kernels::StatOf<T>>(rstd),
                                                 .hidden_size = source.size(-1),
                                                 .eps = eps,
                                                 .subtract_mean = subtract_mean},
                rstd.numel());
        });
    }
    return {y, normalized, rstd};
}

/// `dtype` is dx's; none: dx has dy's.
template <typename Device>
ThreeTensors norm_backward(const Tensor& dy, const Tensor& saved, const MaybeTensor& gamma,
                           const MaybeTensor& beta, const Tensor& rstd, std::string_view save,
                           MaybeType dtype, bool subtract_mean) {
    check_rows(saved, "saved");
    check_like(dy, "dy", saved, "saved");
    const NormParameters affine(gamma, beta, saved, saved.scalar_type());
    check_rstd(rstd, saved);
    const Tensor kept = saved.contiguous();
    const Tensor upstream = dy.contiguous();
    Tensor dx = empty_input_gradient(upstream, dtype);
    Tensor dgamma = empty_gradient(affine.gamma, kept);
    Tensor dbeta = empty_gradient(affine.beta, kept);
    run_with_partial_sums<Device>(kept, dgamma, dbeta, [&]<typename T>(T) {
        return kernels::LayerNormBackwardArgs<T>{.dy = const_pointer<T>(upstream),
                                                 .saved = const_pointer<T>(kept),
                                                 .gamma = source_or_null<T>(affine.gamma),
                                                 .beta = source_or_null<T>(affine.beta),
                                                 .rstd = const_pointer<kernels::StatOf<T>>(rstd),
                                                 .dx = target_if_any<T>(dx),
                                                 .save = parse_save(save),
                                                 .hidden_size = kept.size(-1),
                                                 .subtract_mean = subtract_mean};
    });
    return {dx, dgamma, dbeta};
}

/// y, x̂ (empty unless backward needs it) and rstd [rows].
template <typename Device>
ThreeTensors layer_norm_forward(const Tensor& x, const MaybeTensor& gamma, const MaybeTensor& beta,
                                double eps, std::string_view save, MaybeType dtype) {
    return norm_forward<Device>(x, gamma, beta, eps, save, dtype, true);
}

/// dx, dgamma and dbeta; the latter two empty [0] without the parameter.
template <typename Device>
ThreeTensors layer_norm_backward(const Tensor& dy, const Tensor& saved, const MaybeTensor& gamma,
                                 const MaybeTensor& beta, const Tensor& rstd, std::string_view save,
                                 MaybeType dtype) {
    return norm_backward<Device>(dy, saved, gamma, beta, rstd, save, dtype, true);
}

/// As layer_norm_forward, without mean and beta.
template <typename Device>
ThreeTensors rms_norm_forward(const Tensor& x, const MaybeTensor& gamma, double eps,
                              std::string_view save, MaybeType dtype) {
    return norm_forward<Device>(x, gamma, std::nullopt, eps, save, dtype, false);
}

/// dx, and dgamma (empty [0] without gamma).
template <typename Device>
TwoTensors rms_norm_backward(const Tensor& dy, const Tensor& saved, const MaybeTensor& gamma,
                             const Tensor& rstd, std::string_view save, MaybeType dtype) {
    auto [dx, dgamma, dbeta] =
        norm_backward<Device>(dy, saved, gamma, std::nullopt, rstd, save, dtype, false);
    return {dx, dgamma};
}

}  // namespace models::ops
