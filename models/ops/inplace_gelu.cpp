#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/inplace_gelu_kernels.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const char* approximation(bool tanh) { return tanh ? "tanh" : "none"; }

/// Saves what both forms need for backward. The caller returns y.
Tensor keep_output(AutogradContext* ctx, const TwoTensors& result, bool tanh,
                   std::string_view masks) {
    const auto& [y, branch_mask] = result;
    name_tensor(branch_mask, "branch_mask");
    ctx->save_for_backward({y, branch_mask});
    ctx->saved_data["tanh"] = tanh;
    ctx->saved_data["masks"] = std::string(masks);
    return y;
}

/// dy gelu'(x), or dy gelu'(x + bias), from the tensors that keep_output saved.
Tensor dx_from_output(AutogradContext* ctx, const Tensor& dy) {
    static const auto op = tempo_op<decltype(gelu_backward<Cpu>)>("tempo::gelu_backward");
    const auto saved = ctx->get_saved_variables();
    return op.call(dy, saved[0], saved[1], ctx->saved_data["tanh"].toBool(),
                   ctx->saved_data["masks"].toStringRef());
}

struct InplaceGeluFunction : torch::autograd::Function<InplaceGeluFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, bool tanh,
                          std::string_view masks) {
        static const auto op = tempo_op<decltype(gelu_forward<Cpu>)>("tempo::gelu_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        return keep_output(ctx, op.call(x, tanh, masks), tanh, masks);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        return once_differentiable("tempo::gelu", grads, [&]() -> variable_list {
            return {dx_from_output(ctx, grads[0]), Tensor(), Tensor()};
        });
    }
};

/// gelu(x + bias): dx = dy gelu'(x + bias), dbias = the sum of dx over rows. Saves what gelu saves;
/// the sum is never stored.
struct BiasGeluFunction : torch::autograd::Function<BiasGeluFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias, bool tanh,
                          std::string_view masks) {
        static const auto op =
            tempo_op<decltype(bias_gelu_forward<Cpu>)>("tempo::bias_gelu_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        return keep_output(ctx, op.call(x, bias, tanh, masks), tanh, masks);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        return once_differentiable("tempo::bias_gelu", grads, [&]() -> variable_list {
            const Tensor dx = dx_from_output(ctx, grads[0]);
            const Tensor dbias = ctx->needs_input_grad(1)
                                     ? at::sum(dx.reshape_symint({-1, dx.sym_size(-1)}), 0)
                                     : Tensor();
            return {dx, dbias, Tensor(), Tensor()};
        });
    }
};

/// Saves x and not gelu(x): dW = dyᵀ gelu(x), db = Σ dy, dx = (dy W) gelu'(x). Backward consists of
/// torch's ops, so it can be differentiated again.
struct GeluLinearFunction : torch::autograd::Function<GeluLinearFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                          const Tensor& bias, bool tanh) {
        at::AutoDispatchBelowADInplaceOrView guard;
        ctx->save_for_backward({x, weight});
        ctx->saved_data["tanh"] = tanh;
        return at::linear(at::gelu(x, approximation(tanh)), weight, bias);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto saved = ctx->get_saved_variables();
        const Tensor& x = saved[0];
        const Tensor& weight = saved[1];
        const char* const kind = approximation(ctx->saved_data["tanh"].toBool());
        const Tensor dy = grads[0].reshape_symint({-1, weight.sym_size(0)});
        const Tensor dweight =
            at::mm(dy.t(), at::gelu(x, kind).reshape_symint({-1, weight.sym_size(1)}));
        const Tensor dgelu = at::mm(dy, weight).view_symint(x.sym_sizes());
        return {at::gelu_backward(dgelu, x, kind), dweight, at::sum(dy, 0), Tensor()};
    }
};

Tensor gelu_op(const Tensor& x, bool tanh, std::string_view masks) {
    check_floating(x, "x");
    return InplaceGeluFunction::apply(x, tanh, masks);
}

Tensor bias_gelu_op(const Tensor& x, const Tensor& bias, bool tanh, std::string_view masks) {
    check_rows(x, "x");
    check_floating(bias, "bias");
    return BiasGeluFunction::apply(x, bias, tanh, masks);
}

Tensor gelu_linear_op(const Tensor& x, const Tensor& weight, const Tensor& bias, bool tanh) {
    check_rows(x, "x");
    check_weight(weight, "weight", x.sym_size(-1), x);
    check_bias(bias, "bias", weight);
    return GeluLinearFunction::apply(x, weight, bias, tanh);
}

}  // namespace

Tensor inplace_gelu(const Tensor& x, bool tanh, kernels::MaskKind mask_kind) {
    static const auto op = tempo_op<decltype(gelu_op)>("tempo::gelu");
    return op.call(x, tanh, name_of(mask_kind));
}

Tensor bias_gelu(const Tensor& x, const Tensor& bias, bool tanh, kernels::MaskKind mask_kind) {
    static const auto op = tempo_op<decltype(bias_gelu_op)>("tempo::bias_gelu");
    return op.call(x, bias, tanh, name_of(mask_kind));
}

Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool tanh) {
    static const auto op = tempo_op<decltype(gelu_linear_op)>("tempo::gelu_linear");
    return op.call(x, weight, bias, tanh);
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("gelu", gelu_op);
    m.impl("bias_gelu", bias_gelu_op);
    m.impl("gelu_linear", gelu_linear_op);
}

}  // namespace models::ops
