#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/inplace_layer_norm_kernels.h"
#include "models/ops/tempo_ops.h"

#include <torch/library.h>

#include <initializer_list>
#include <utility>

namespace models::ops {
namespace {

using kernels::LayerNormSave;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Saves y or x̂, rstd and the parameters, some of which there may not be. The caller returns y.
Tensor keep_norm(AutogradContext* ctx, const Tensor& x, const ThreeTensors& result,
                 std::string_view save, std::initializer_list<MaybeTensor> parameters) {
    const auto& [y, normalized, rstd] = result;
    const bool keep_output = parse_save(save) == LayerNormSave::kOutput;
    name_tensor(rstd, "rstd");
    if (!keep_output) name_tensor(normalized, "normalized");
    variable_list kept{keep_output ? y : normalized, rstd};
    for (const MaybeTensor& parameter : parameters) kept.push_back(parameter.value_or(Tensor()));
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["save"] = std::string(save);
    ctx->saved_data["dtype"] = x.scalar_type();
    return y;
}

struct InplaceLayerNormFunction : torch::autograd::Function<InplaceLayerNormFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& gamma,
                          const MaybeTensor& beta, double eps, std::string_view save,
                          MaybeType dtype) {
        static const auto op =
            tempo_op<decltype(layer_norm_forward<Cpu>)>("tempo::layer_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        return keep_norm(ctx, x, op.call(x, gamma, beta, eps, save, dtype), save, {gamma, beta});
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<decltype(layer_norm_backward<Cpu>)>("tempo::layer_norm_backward");
        const auto saved = ctx->get_saved_variables();
        const MaybeTensor gamma = given(saved[2]), beta = given(saved[3]);
        return once_differentiable("tempo::layer_norm", grads, [&]() -> variable_list {
            auto [dx, dgamma, dbeta] = op.call(grads[0], saved[0], gamma, beta, saved[1],
                                               ctx->saved_data["save"].toStringRef(),
                                               ctx->saved_data["dtype"].toScalarType());
            return {dx,      gamma ? dgamma : Tensor(), beta ? dbeta : Tensor(), Tensor(), Tensor(),
                    Tensor()};
        });
    }
};

struct InplaceRmsNormFunction : torch::autograd::Function<InplaceRmsNormFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& gamma,
                          double eps, std::string_view save, MaybeType dtype) {
        static const auto op = tempo_op<decltype(rms_norm_forward<Cpu>)>("tempo::rms_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        return keep_norm(ctx, x, op.call(x, gamma, eps, save, dtype), save, {gamma});
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<decltype(rms_norm_backward<Cpu>)>("tempo::rms_norm_backward");
        const auto saved = ctx->get_saved_variables();
        const MaybeTensor gamma = given(saved[2]);
        return once_differentiable("tempo::rms_norm", grads, [&]() -> variable_list {
            auto [dx, dgamma] =
                op.call(grads[0], saved[0], gamma, saved[1], ctx->saved_data["save"].toStringRef(),
                        ctx->saved_data["dtype"].toScalarType());
            return {dx, gamma ? dgamma : Tensor(), Tensor(), Tensor(), Tensor()};
        });
    }
};

Tensor layer_norm_op(const Tensor& x, const MaybeTensor& gamma, const MaybeTensor& beta, double eps,
                     std::string_view save, MaybeType dtype) {
    check_rows(x, "x");
    return InplaceLayerNormFunction::apply(x, gamma, beta, eps, save, dtype);
}

Tensor rms_norm_op(const Tensor& x, const MaybeTensor& gamma, double eps, std::string_view save,
                   MaybeType dtype) {
    check_rows(x, "x");
    return InplaceRmsNormFunction::apply(x, gamma, eps, save, dtype);
}

}  // namespace

Tensor inplace_layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          LayerNormSave save, MaybeType dtype) {
    static const auto op = tempo_op<decltype(layer_norm_op)>("tempo::layer_norm");
    return op.call(x, given(gamma), given(beta), eps,
                   save == LayerNormSave::kOutput ? "output" : "normalized", dtype);
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("layer_norm", layer_norm_op);
    m.impl("rms_norm", rms_norm_op);
}

}  // namespace models::ops
