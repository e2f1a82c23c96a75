#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/attention_core_kernels.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/bmm.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Returns without a call if nothing is to cast: `Tensor::to` would dispatch an op that returns its
/// input, which no op may do below autograd.
Tensor as_type(const Tensor& tensor, at::ScalarType type) {
    return tensor.scalar_type() == type ? tensor : tensor.to(type);
}

/// AttentionCoreSpec with values that may be symbolic.
struct AttentionCoreCall {
    double scale = 1;
    bool causal = false;
    int64_t num_heads = 1;
    DropoutCall dropout;
    bool recompute = true;
};

struct AttentionCoreFunction : torch::autograd::Function<AttentionCoreFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& scores, const Tensor& value,
                          const MaybeTensor& additive_mask, const AttentionCoreCall& call) {
        static const auto op =
            tempo_op<decltype(softmax_dropout_forward<Cpu>)>("tempo::softmax_dropout_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        const DropoutCall& drop = call.dropout;
        auto [probs, dropped, keep_mask] =
            op.call(scores, additive_mask, call.scale, call.causal, call.num_heads, drop.p,
                    name_of(drop.mask_kind), drop.key);
        name_tensor(probs, "attention_probs");
        name_tensor(keep_mask, "keep_mask");
        const bool keeps_dropped = drop.p > 0 && !call.recompute;
        if (keeps_dropped) name_tensor(dropped, "dropped_probs");
        ctx->save_for_backward({probs, keep_mask, value, keeps_dropped ? dropped : Tensor()});
        ctx->saved_data["scale"] = call.scale;
        keep_call(*ctx, drop);
        return at::bmm(as_type(drop.p > 0 ? dropped : probs, value.scalar_type()), value);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        return once_differentiable("tempo::attention_core", grads,
                                   [&] { return gradients(ctx, grads); });
    }

private:
    /// With D' = P keep / q:  dV = D'ᵀ dO,  dD = dO Vᵀ,  dscores from dD, P and the mask.
    static variable_list gradients(AutogradContext* ctx, const variable_list& grads) {
        const auto saved = ctx->get_saved_variables();
        const Tensor& probs = saved[0];
        const Tensor& keep_mask = saved[1];
        const Tensor& value = saved[2];
        const DropoutCall drop = kept_call(*ctx);
        const Tensor dcontext = as_type(grads[0], value.scalar_type());
        Tensor dvalue =
            at::bmm(as_type(saved[3].defined() ? saved[3] : dropped_probs(probs, keep_mask, drop),
                            value.scalar_type())
                        .transpose(1, 2),
                    dcontext);
        Tensor ddropped = as_type(at::bmm(dcontext, value.transpose(1, 2)), probs.scalar_type());
        overwrite_with_dscores(ddropped, probs, keep_mask, ctx->saved_data["scale"].toDouble(),
                               drop);
        return {ddropped, dvalue, Tensor(), Tensor()};
    }
    static Tensor dropped_probs(const Tensor& probs, const Tensor& keep_mask,
                                const DropoutCall& drop) {
        static const auto op =
            tempo_op<decltype(softmax_dropout_recompute<Cpu>)>("tempo::softmax_dropout_recompute");
        if (drop.p == 0) return probs;
        return op.call(probs, keep_mask, drop.p, name_of(drop.mask_kind), drop.key);
    }
    static void overwrite_with_dscores(Tensor& ddropped, const Tensor& probs,
                                       const Tensor& keep_mask, double scale,
                                       const DropoutCall& drop) {
        static const auto op =
            tempo_op<decltype(softmax_dropout_backward_<Cpu>)>("tempo::softmax_dropout_backward_");
        op.call(ddropped, probs, keep_mask, scale, drop.p, name_of(drop.mask_kind), drop.key);
    }
};

Tensor attention_core_op(const Tensor& scores, const Tensor& value,
                         const MaybeTensor& additive_mask, double scale, bool causal,
                         int64_t num_heads, double p, std::string_view masks,
                         c10::SymIntArrayRef key, bool recompute) {
    check_scores(scores, "scores");
    check_floating(value, "value");
    check_is_constant(additive_mask);
    TORCH_CHECK(value.dim() == 3 && value.sym_size(0) == scores.sym_size(0) &&
                    value.sym_size(1) == scores.sym_size(2) && value.device() == scores.device(),
                "tempo: value has shape ", value.sym_sizes(), " on ", value.device(),
                "; expected [", scores.sym_size(0), ", ", scores.sym_size(2), ", head_dim] on ",
                scores.device());
    return AttentionCoreFunction::apply(scores, value, additive_mask,
                                        AttentionCoreCall{.scale = scale,
                                                          .causal = causal,
                                                          .num_heads = num_heads,
                                                          .dropout = dropout_call(p, masks, key),
                                                          .recompute = recompute});
}

}  // namespace

Tensor attention_core(const Tensor& scores, const Tensor& value, const MaybeTensor& additive_mask,
                      const AttentionCoreSpec& spec) {
    static const auto op = tempo_op<decltype(attention_core_op)>("tempo::attention_core");
    return op.call(scores, value, additive_mask, spec.scale, spec.causal, spec.num_heads,
                   spec.dropout.p, name_of(spec.dropout.mask_kind), key_array(spec.dropout.key),
                   spec.recompute);
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("attention_core", attention_core_op);
}

}  // namespace models::ops
