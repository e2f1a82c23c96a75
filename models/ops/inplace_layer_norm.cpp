#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/inplace_layer_norm_kernels.h"
#include "models/ops/tempo_ops.h"

#include <torch/library.h>

namespace models::ops {
namespace {

using kernels::LayerNormSave;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct InplaceLayerNormFunction : torch::autograd::Function<InplaceLayerNormFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& gamma,
                          const MaybeTensor& beta, double eps, std::string_view save,
                          MaybeType dtype) {
        static const auto op =
            tempo_op<decltype(layer_norm_forward<Cpu>)>("tempo::layer_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, normalized, rstd] = op.call(x, gamma, beta, eps, save, dtype);
        const bool keep_output = parse_save(save) == LayerNormSave::kOutput;
        name_tensor(rstd, "rstd");
        if (!keep_output) name_tensor(normalized, "normalized");
        ctx->save_for_backward({keep_output ? y : normalized, rstd, gamma.value_or(Tensor()),
                                beta.value_or(Tensor())});
        ctx->saved_data["save"] = std::string(save);
        ctx->saved_data["dtype"] = x.scalar_type();
        return y;
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

Tensor layer_norm_op(const Tensor& x, const MaybeTensor& gamma, const MaybeTensor& beta, double eps,
                     std::string_view save, MaybeType dtype) {
    check_rows(x, "x");
    return InplaceLayerNormFunction::apply(x, gamma, beta, eps, save, dtype);
}

}  // namespace

Tensor inplace_layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          LayerNormSave save, MaybeType dtype) {
    static const auto op = tempo_op<decltype(layer_norm_op)>("tempo::layer_norm");
    return op.call(x, given(gamma), given(beta), eps,
                   save == LayerNormSave::kOutput ? "output" : "normalized", dtype);
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) { m.impl("layer_norm", layer_norm_op); }
TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("layer_norm_forward", layer_norm_forward<Cpu>);
    m.impl("layer_norm_backward", layer_norm_backward<Cpu>);
}
TORCH_LIBRARY_IMPL(tempo, Meta, m) {
    m.impl("layer_norm_forward", layer_norm_forward<Meta>);
    m.impl("layer_norm_backward", layer_norm_backward<Meta>);
}

}  // namespace models::ops
