#include "models/ops/residual_layer_norm_kernels.h"

#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using kernels::LayerNormSave;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The arguments beside the tensors, as in kernels::ResidualLayerNormForwardArgs.
struct ResidualLayerNormSpec {
    DropoutCall dropout;
    double eps = 1e-5;
    std::string_view save = "output";
    bool with_sum = false;  // return the sum beside y
};

/// Saves y (or x̂), rstd and the mask: what dropout, addition and layer_norm save one by one.
struct ResidualLayerNormFunction : torch::autograd::Function<ResidualLayerNormFunction> {
    static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& residual,
                                 const MaybeTensor& gamma, const MaybeTensor& beta,
                                 const ResidualLayerNormSpec& spec) {
        static const auto op = tempo_op<decltype(residual_layer_norm_forward<Cpu>)>(
            "tempo::residual_layer_norm_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        const DropoutCall& drop = spec.dropout;
        auto [y, sum, normalized, rstd, keep_mask] =
            op.call(x, residual, gamma, beta, drop.p, name_of(drop.mask_kind), drop.key, spec.eps,
                    spec.save, spec.with_sum);
        const bool keep_output = parse_save(spec.save) == LayerNormSave::kOutput;
        name_tensor(keep_mask, "keep_mask");
        name_tensor(rstd, "rstd");
        if (!keep_output) name_tensor(normalized, "normalized");
        ctx->save_for_backward({keep_output ? y : normalized, rstd, keep_mask,
                                gamma.value_or(Tensor()), beta.value_or(Tensor())});
        ctx->saved_data["save"] = std::string(spec.save);
        ctx->saved_data["dtype"] = residual.scalar_type();
        keep_call(*ctx, drop);
        ctx->set_materialize_grads(false);  // an unused sum costs no tensor of zeros
        return spec.with_sum ? variable_list{y, sum} : variable_list{y};
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op = tempo_op<decltype(residual_layer_norm_backward<Cpu>)>(
            "tempo::residual_layer_norm_backward");
        const auto saved = ctx->get_saved_variables();
        const MaybeTensor gamma = given(saved[3]), beta = given(saved[4]);
        const DropoutCall drop = kept_call(*ctx);
        const Tensor dy = grads[0].defined() ? grads[0] : at::zeros_like(saved[0]);
        const MaybeTensor dsum = grads.size() > 1 ? given(grads[1]) : std::nullopt;
        return once_differentiable("tempo::residual_layer_norm", grads, [&]() -> variable_list {
            auto [dx, dresidual, dgamma, dbeta] =
                op.call(dy, dsum, saved[0], gamma, beta, saved[1], saved[2], drop.p,
                        name_of(drop.mask_kind), drop.key, ctx->saved_data["save"].toStringRef(),
                        ctx->saved_data["dtype"].toScalarType());
            return {dx, dresidual, gamma ? dgamma : Tensor(), beta ? dbeta : Tensor(), Tensor()};
        });
    }
};

/// The CPU kernel takes every row; the CUDA kernel holds a row in registers, in packs of eight.
bool one_kernel_takes(const Tensor& x) {
    if (x.is_cpu()) return true;
    if (x.scalar_type() == at::kDouble) return false;
    const int64_t hidden_size = x.sym_size(-1).guard_int(__FILE__, __LINE__);
    return hidden_size % 8 == 0 && hidden_size <= kernels::kMaxFusedHiddenSize;
}

/// The three ops one after another: the same values and the same saved tensors.
variable_list step_by_step(const Tensor& x, const Tensor& residual, const MaybeTensor& gamma,
                           const MaybeTensor& beta, const ResidualLayerNormSpec& spec) {
    static const auto op =
        tempo_op<Tensor(const Tensor&, double, std::string_view, c10::SymIntArrayRef)>(
            "tempo::dropout");
    const DropoutCall& drop = spec.dropout;
    const Tensor dropped = drop.p > 0 ? op.call(x, drop.p, name_of(drop.mask_kind), drop.key) : x;
    const Tensor sum = at::add(residual, dropped);
    const Tensor y = inplace_layer_norm(sum, gamma.value_or(Tensor()), beta.value_or(Tensor()),
                                        spec.eps, parse_save(spec.save), x.scalar_type());
    return {y, sum};
}

variable_list residual_layer_norm_of(const Tensor& x, const Tensor& residual,
                                     const MaybeTensor& gamma, const MaybeTensor& beta,
                                     const ResidualLayerNormSpec& spec) {
    check_rows(x, "x");
    check_like_or_float(residual, "residual", x, "x");
    if (!one_kernel_takes(x)) return step_by_step(x, residual, gamma, beta, spec);
    return ResidualLayerNormFunction::apply(x, residual, gamma, beta, spec);
}

Tensor residual_layer_norm_op(const Tensor& x, const Tensor& residual, const MaybeTensor& gamma,
                              const MaybeTensor& beta, double p, std::string_view masks,
                              c10::SymIntArrayRef key, double eps, std::string_view save) {
    return residual_layer_norm_of(
        x, residual, gamma, beta,
        {.dropout = residual_dropout_call(p, masks, key), .eps = eps, .save = save})[0];
}

std::tuple<Tensor, Tensor> residual_layer_norm_sum_op(
    const Tensor& x, const Tensor& residual, const MaybeTensor& gamma, const MaybeTensor& beta,
    double p, std::string_view masks, c10::SymIntArrayRef key, double eps, std::string_view save) {
    const variable_list both =
        residual_layer_norm_of(x, residual, gamma, beta,
                               {.dropout = residual_dropout_call(p, masks, key),
                                .eps = eps,
                                .save = save,
                                .with_sum = true});
    return {both[0], both[1]};
}

}  // namespace

ResidualLayerNorm residual_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma,
                                      const Tensor& beta, const ResidualLayerNormOptions& options) {
    static const auto op = tempo_op<decltype(residual_layer_norm_op)>("tempo::residual_layer_norm");
    static const auto op_with_sum =
        tempo_op<decltype(residual_layer_norm_sum_op)>("tempo::residual_layer_norm_sum");
    const DropoutSpec& dropout = options.dropout;
    const auto call = [&](const auto& chosen) {
        return chosen.call(x, residual, given(gamma), given(beta), dropout.p,
                           name_of(dropout.mask_kind), key_array(dropout.key), options.eps,
                           options.save == LayerNormSave::kOutput ? "output" : "normalized");
    };
    if (!options.with_sum) return {.y = call(op), .sum = {}};
    auto [y, sum] = call(op_with_sum);
    return {.y = y, .sum = sum};
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("residual_layer_norm", residual_layer_norm_op);
    m.impl("residual_layer_norm_sum", residual_layer_norm_sum_op);
}

}  // namespace models::ops
