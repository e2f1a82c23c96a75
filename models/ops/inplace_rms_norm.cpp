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

struct InplaceRmsNormFunction : torch::autograd::Function<InplaceRmsNormFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& gamma,
                          double eps, std::string_view save, MaybeType dtype) {
        static const auto op = tempo_op<decltype(rms_norm_forward<Cpu>)>("tempo::rms_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, normalized, rstd] = op.call(x, gamma, eps, save, dtype);
        const bool keep_output = parse_save(save) == LayerNormSave::kOutput;
        name_tensor(rstd, "rstd");
        if (!keep_output) name_tensor(normalized, "normalized");
        ctx->save_for_backward({keep_output ? y : normalized, rstd, gamma.value_or(Tensor())});
        ctx->saved_data["save"] = std::string(save);
        ctx->saved_data["dtype"] = x.scalar_type();
        return y;
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

Tensor rms_norm_op(const Tensor& x, const MaybeTensor& gamma, double eps, std::string_view save,
                   MaybeType dtype) {
    check_rows(x, "x");
    return InplaceRmsNormFunction::apply(x, gamma, eps, save, dtype);
}

}  // namespace

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) { m.impl("rms_norm", rms_norm_op); }
TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("rms_norm_forward", rms_norm_forward<Cpu>);
    m.impl("rms_norm_backward", rms_norm_backward<Cpu>);
}
TORCH_LIBRARY_IMPL(tempo, Meta, m) {
    m.impl("rms_norm_forward", rms_norm_forward<Meta>);
    m.impl("rms_norm_backward", rms_norm_backward<Meta>);
}

}  // namespace models::ops
