#include "kernels/inplace_layernorm.h"

#include "models/observer.h"
#include "models/ops/kernel_dispatch.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using kernels::LayerNormSave;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

LayerNormSave parse_save(std::string_view save) {
    if (save == "output") return LayerNormSave::kOutput;
    if (save == "normalized") return LayerNormSave::kNormalized;
    TORCH_CHECK(false, "tempo: save is '", save, "'; expected output or normalized");
}

void check_parameter(const Tensor& x, const Tensor& parameter, const char* argument) {
    TORCH_CHECK(parameter.numel() == x.size(-1) && parameter.scalar_type() == x.scalar_type(),
                "tempo: ", argument, " has ", parameter.numel(), " elements of ",
                parameter.scalar_type(), "; expected ", x.size(-1), " of ", x.scalar_type());
}

/// y, x̂ (empty unless it is what backward keeps) and rstd [rows].
ThreeTensors layer_norm_forward_cpu(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    double eps, std::string_view save) {
    check_parameter(x, gamma, "gamma");
    check_parameter(x, beta, "beta");
    const Tensor source = x.contiguous();
    const bool keep_normalized = parse_save(save) == LayerNormSave::kNormalized;
    const int64_t hidden_size = source.size(-1);
    const int64_t num_rows = source.numel() / hidden_size;
    Tensor y = at::empty_like(source);
    Tensor normalized = keep_normalized ? at::empty_like(source) : at::empty({0}, source.options());
    Tensor rstd = at::empty({num_rows}, source.options().dtype(stat_type(source)));
    with_kernel_type(source, "x", [&]<typename T>(T) {
        const kernels::LayerNormForwardArgs<T> args{
            .x = const_pointer<T>(source),
            .gamma = const_pointer<T>(gamma),
            .beta = const_pointer<T>(beta),
            .y = pointer<T>(y),
            .normalized = keep_normalized ? pointer<T>(normalized) : nullptr,
            .rstd = pointer<kernels::StatOf<T>>(rstd),
            .hidden_size = hidden_size,
            .eps = eps};
        parallel_ranges(num_rows, 1, kGrainElements / hidden_size,
                        [&](int64_t begin, int64_t end) { layer_norm_forward(args, begin, end); });
    });
    return {y, normalized, rstd};
}

ThreeTensors layer_norm_backward_cpu(const Tensor& dy, const Tensor& saved, const Tensor& gamma,
                                     const Tensor& beta, const Tensor& rstd,
                                     std::string_view save) {
    TORCH_CHECK(dy.sizes() == saved.sizes() && dy.scalar_type() == saved.scalar_type(),
                "tempo: dy has another shape or dtype than the saved tensor");
    const Tensor upstream = dy.contiguous();
    const int64_t hidden_size = upstream.size(-1);
    const int64_t num_rows = upstream.numel() / hidden_size;
    const int64_t num_partials = kernels::layer_norm_num_partials(num_rows);
    Tensor dx = at::empty_like(upstream);
    Tensor dgamma = at::empty_like(gamma);
    Tensor dbeta = at::empty_like(beta);
    const Tensor partials =
        at::empty({num_partials, 2, hidden_size}, upstream.options().dtype(stat_type(upstream)));
    with_kernel_type(upstream, "dy", [&]<typename T>(T) {
        using Stat = kernels::StatOf<T>;
        const kernels::LayerNormBackwardArgs<T> args{.dy = const_pointer<T>(upstream),
                                                     .saved = const_pointer<T>(saved),
                                                     .gamma = const_pointer<T>(gamma),
                                                     .beta = const_pointer<T>(beta),
                                                     .rstd = const_pointer<Stat>(rstd),
                                                     .dx = pointer<T>(dx),
                                                     .partials = pointer<Stat>(partials),
                                                     .save = parse_save(save),
                                                     .hidden_size = hidden_size};
        parallel_ranges(num_partials, 1, 1, [&](int64_t begin, int64_t end) {
            layer_norm_backward(args, num_rows, begin, end);
        });
        parallel_ranges(hidden_size, kernels::kElementGranularity, kGrainElements / num_partials,
                        [&](int64_t begin, int64_t end) {
                            kernels::layer_norm_reduce_partials(
                                const_pointer<Stat>(partials), num_partials, hidden_size,
                                pointer<T>(dgamma), pointer<T>(dbeta), begin, end);
                        });
    });
    return {dx, dgamma, dbeta};
}

struct InplaceLayerNormFunction : torch::autograd::Function<InplaceLayerNormFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, double eps, std::string_view save) {
        static const auto op =
            tempo_op<ThreeTensors(const Tensor&, const Tensor&, const Tensor&, double,
                                  std::string_view)>("tempo::layer_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, normalized, rstd] = op.call(x, gamma, beta, eps, save);
        const bool keep_output = parse_save(save) == LayerNormSave::kOutput;
        name_tensor(rstd, "rstd");
        if (!keep_output) name_tensor(normalized, "normalized");
        ctx->save_for_backward({keep_output ? y : normalized, rstd, gamma, beta});
        ctx->saved_data["save"] = std::string(save);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<ThreeTensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                  const Tensor&, std::string_view)>("tempo::layer_norm_backward");
        const auto saved = ctx->get_saved_variables();
        auto [dx, dgamma, dbeta] = op.call(grads[0], saved[0], saved[2], saved[3], saved[1],
                                           ctx->saved_data["save"].toStringRef());
        return {dx, dgamma, dbeta, Tensor(), Tensor()};
    }
};

Tensor layer_norm_autograd(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                           std::string_view save) {
    return InplaceLayerNormFunction::apply(x, gamma, beta, eps, save);
}

}  // namespace

Tensor inplace_layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          LayerNormSave save) {
    static const auto op =
        tempo_op<Tensor(const Tensor&, const Tensor&, const Tensor&, double, std::string_view)>(
            "tempo::layer_norm");
    return op.call(x, gamma, beta, eps, save == LayerNormSave::kOutput ? "output" : "normalized");
}

TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("layer_norm_forward", layer_norm_forward_cpu);
    m.impl("layer_norm_backward", layer_norm_backward_cpu);
}
TORCH_LIBRARY_IMPL(tempo, Autograd, m) { m.impl("layer_norm", layer_norm_autograd); }

}  // namespace models::ops
