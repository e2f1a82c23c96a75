#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/mm.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Passes without dropout take any key.
const std::array<c10::SymInt, 5>& no_key() {
    static const std::array<c10::SymInt, 5> key{0, 0, 0, 0, 0};
    return key;
}

Tensor run_activation(const Tensor& x, const Tensor& bias, std::string_view activation) {
    static const auto op =
        tempo_op<decltype(bias_dropout_forward<Cpu>)>("tempo::bias_dropout_forward");
    return std::get<0>(op.call(x, bias, std::nullopt, activation, false, 0.0, "philox", no_key()));
}

TwoTensors run_backward(const Tensor& dy, const MaybeTensor& x, const MaybeTensor& bias,
                        const Tensor& keep_mask, std::string_view activation,
                        const DropoutCall& drop) {
    static const auto op =
        tempo_op<decltype(bias_dropout_backward<Cpu>)>("tempo::bias_dropout_backward");
    return op.call(dy, x, bias, keep_mask, activation, drop.p, name_of(drop.mask_kind), drop.key);
}

/// What bias_dropout_backward takes where nothing was dropped.
Tensor no_mask(const Tensor& like) { return at::empty({0}, like.options().dtype(at::kByte)); }
const DropoutCall& no_dropout() {
    static const DropoutCall call{.p = 0, .mask_kind = kernels::MaskKind::kNone, .key = no_key()};
    return call;
}

/// act(x + bias). Saves x and bias; backward adds them up again.
struct BiasActivationFunction : torch::autograd::Function<BiasActivationFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias,
                          std::string_view activation) {
        at::AutoDispatchBelowADInplaceOrView guard;
        ctx->save_for_backward({x, bias});
        ctx->saved_data["activation"] = std::string(activation);
        return run_activation(x, bias, activation);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto saved = ctx->get_saved_variables();
        return once_differentiable("tempo::bias_activation", grads, [&]() -> variable_list {
            auto [dx, dbias] =
                run_backward(grads[0], saved[0], saved[1], no_mask(saved[0]),
                             ctx->saved_data["activation"].toStringRef(), no_dropout());
            return {dx, dbias, Tensor()};
        });
    }
};

/// act(x + bias) Wᵀ. Saves x, bias and W, not the activation's output: backward computes it again.
struct BiasActivationLinearFunction : torch::autograd::Function<BiasActivationLinearFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias,
                          const Tensor& weight, std::string_view activation) {
        at::AutoDispatchBelowADInplaceOrView guard;
        ctx->save_for_backward({x, bias, weight});
        ctx->saved_data["activation"] = std::string(activation);
        const Tensor rows =
            run_activation(x, bias, activation).reshape_symint({-1, x.sym_size(-1)});
        std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
        sizes.back() = weight.sym_size(0);
        return at::mm(rows, weight.t()).view_symint(sizes);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto saved = ctx->get_saved_variables();
        const Tensor &x = saved[0], &bias = saved[1], &weight = saved[2];
        const auto op = "tempo::bias_activation_linear";
        return once_differentiable(op, grads, [&]() -> variable_list {
            const auto& activation = ctx->saved_data["activation"].toStringRef();
            const Tensor dy = grads[0].reshape_symint({-1, weight.sym_size(0)});
            const Tensor dweight = at::mm(
                dy.t(), run_activation(x, bias, activation).reshape_symint({-1, x.sym_size(-1)}));
            auto [dx, dbias] = run_backward(at::mm(dy, weight).view_symint(x.sym_sizes()), x, bias,
                                            no_mask(x), activation, no_dropout());
            return {dx, dbias, dweight, Tensor()};
        });
    }
};

/// residual + dropout(x + bias). Saves the mask.
struct BiasDropoutResidualFunction : torch::autograd::Function<BiasDropoutResidualFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias,
                          const Tensor& residual, const DropoutCall& drop) {
        static const auto op =
            tempo_op<decltype(bias_dropout_forward<Cpu>)>("tempo::bias_dropout_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, biased, keep_mask] =
            op.call(x, bias, residual, "none", false, drop.p, name_of(drop.mask_kind), drop.key);
        name_tensor(keep_mask, "keep_mask");
        ctx->save_for_backward({keep_mask});
        keep_call(*ctx, drop);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const Tensor keep_mask = ctx->get_saved_variables()[0];
        return once_differentiable("tempo::bias_dropout_residual", grads, [&]() -> variable_list {
            auto [dx, dbias] = run_backward(grads[0], std::nullopt, std::nullopt, keep_mask, "none",
                                            kept_call(*ctx));
            return {dx, dbias, grads[0], Tensor()};
        });
    }
};

/// Query, key and value of attention from one projection. Saves nothing.
struct BiasHeadsFunction : torch::autograd::Function<BiasHeadsFunction> {
    static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias,
                                 int64_t num_heads) {
        static const auto op =
            tempo_op<decltype(bias_heads_forward<Cpu>)>("tempo::bias_heads_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        ctx->saved_data["num_heads"] = num_heads;
        auto [query, key, value] = op.call(x, bias, num_heads);
        return {query, key, value};
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<decltype(bias_heads_backward<Cpu>)>("tempo::bias_heads_backward");
        return once_differentiable("tempo::bias_heads", grads, [&]() -> variable_list {
            auto [dx, dbias] =
                op.call(grads[0], grads[1], grads[2], ctx->saved_data["num_heads"].toInt());
            return {dx, dbias, Tensor()};
        });
    }
};

Tensor bias_activation_op(const Tensor& x, const Tensor& bias, std::string_view activation) {
    check_rows(x, "x");
    return BiasActivationFunction::apply(x, bias, activation);
}
Tensor bias_activation_linear_op(const Tensor& x, const Tensor& bias, const Tensor& weight,
                                 std::string_view activation) {
    check_rows(x, "x");
    check_weight(weight, "weight", x.sym_size(-1), x);
    return BiasActivationLinearFunction::apply(x, bias, weight, activation);
}
Tensor bias_dropout_residual_op(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                double p, std::string_view masks, c10::SymIntArrayRef key) {
    check_rows(x, "x");
    return BiasDropoutResidualFunction::apply(x, bias, residual,
                                              residual_dropout_call(p, masks, key));
}
ThreeTensors bias_heads_op(const Tensor& x, const Tensor& bias, int64_t num_heads) {
    check_rows(x, "x");
    const variable_list heads = BiasHeadsFunction::apply(x, bias, num_heads);
    return {heads[0], heads[1], heads[2]};
}

}  // namespace

Tensor bias_activation(const Tensor& x, const Tensor& bias, std::string_view activation) {
    static const auto op = tempo_op<decltype(bias_activation_op)>("tempo::bias_activation");
    return op.call(x, bias, activation);
}

Tensor bias_activation_linear(const Tensor& x, const Tensor& bias, const Tensor& weight,
                              std::string_view activation) {
    static const auto op =
        tempo_op<decltype(bias_activation_linear_op)>("tempo::bias_activation_linear");
    return op.call(x, bias, weight, activation);
}

Tensor bias_dropout_residual(const Tensor& x, const Tensor& bias, const Tensor& residual,
                             const DropoutSpec& dropout) {
    static const auto op =
        tempo_op<decltype(bias_dropout_residual_op)>("tempo::bias_dropout_residual");
    return op.call(x, bias, residual, dropout.p, name_of(dropout.mask_kind),
                   key_array(dropout.key));
}

Heads bias_heads(const Tensor& x, const Tensor& bias, int64_t num_heads) {
    static const auto op = tempo_op<decltype(bias_heads_op)>("tempo::bias_heads");
    auto [query, key, value] = op.call(x, bias, num_heads);
    return {query, key, value};
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("bias_activation", bias_activation_op);
    m.impl("bias_activation_linear", bias_activation_linear_op);
    m.impl("bias_dropout_residual", bias_dropout_residual_op);
    m.impl("bias_heads", bias_heads_op);
}

}  // namespace models::ops
