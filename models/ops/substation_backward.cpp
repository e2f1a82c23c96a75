#include "models/observer/observer.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/substation_layer.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

namespace models::ops::substation {
namespace {

/// [B*S, H] -> [B*A, S, D].
Tensor split_heads(const Tensor& rows, const Tensor& like, int64_t num_heads) {
    return rows.view_symint({-1, like.sym_size(1), num_heads, like.sym_size(2)})
        .transpose(1, 2)
        .reshape_symint(like.sym_sizes());
}

/// The layer in backward, in the order of bwd_operators.
class Backward {
public:
    Backward(const std::vector<Tensor>& kept, const LayerCall& call) : k_(kept), call_(call) {}

    Gradients run(const Tensor& dy) const {
        const RootModuleScope layer(call_.module_path);
        Gradients g;
        const auto [dresidual2, dlinear2, dinner] =
            output(dy.reshape_symint({-1, dy.sym_size(-1)}), g.weights);
        const Tensor dfirst = intermediate(dinner, g.weights);
        const auto [dresidual1, dcontext] =
            attention_output(dfirst, dresidual2, dlinear2, g.weights);
        g.x = attention(dcontext, dresidual1, g.weights).view_symint(k_[kInput].sym_sizes());
        return g;
    }

private:
    /// The gradients of the second residual, of the linear layer before it, and of its input.
    ThreeTensors output(const Tensor& dy, Weights& w) const {
        const ModuleScope module_path("output");
        const auto [dnormalized, dgamma, dbeta, none] =
            scale_shift(dy, std::nullopt, k_[kSecondNormalized], k_[kSecondGamma],
                        std::nullopt);  // bsb
        w.second_norm = {dgamma, dbeta};
        const auto [dresidual, dlinear] =
            norm(dnormalized, kSecondCentered, DropoutSite::kOutput);   // blnrd
        w.down.weight = at::mm(dlinear.t(), k_[kInnerResult]);          // dWlin2
        return {dresidual, dlinear, at::mm(dlinear, k_[kDownWeight])};  // dXlin2
    }

    /// The gradient of the first LayerNorm's output, without the residual's share.
    Tensor intermediate(const Tensor& dinner, Weights& w) const {
        const ModuleScope module_path("intermediate");
        const auto [dup, dbias] = inner(dinner);                // bdrlb
        w.up = {at::mm(dup.t(), k_[kAttentionResult]), dbias};  // dWlin1
        return at::mm(dup, k_[kUpWeight]);                      // dXlin1
    }

    /// The gradients of the first residual and of attention's context.
    TwoTensors attention_output(const Tensor& dy, const Tensor& dresidual2, const Tensor& dlinear2,
                                Weights& w) const {
        const ModuleScope module_path("attention.output");
        const auto [dnormalized, dgamma, dbeta, ddown_bias] =
            scale_shift(dy, dresidual2, k_[kFirstNormalized], k_[kFirstGamma], dlinear2);  // ebsb
        w.first_norm = {dgamma, dbeta};
        w.down.bias = ddown_bias;
        const auto [dresidual, dlinear] =
            norm(dnormalized, kFirstCentered, DropoutSite::kAttentionOutput);    // blnrd
        w.output = {at::mm(dlinear.t(), k_[kContext]), column_sum_of(dlinear)};  // dWout, baob
        return {dresidual, at::mm(dlinear, k_[kOutputWeight])};                  // dXout
    }

    /// The gradient of the layer's input.
    Tensor attention(const Tensor& dcontext, const Tensor& dresidual, Weights& w) const {
        const ModuleScope module_path("attention.self");
        const auto [dprojected, dbias] = heads(dcontext);
        const Tensor input = k_[kInput].view_symint({-1, k_[kInput].sym_size(-1)});
        w.projection = {at::mm(dprojected.t(), input), dbias};  // dWQKV-fused
        return at::mm(dprojected, k_[kProjectionWeight])        // dXQKV-fused
            .add_(dresidual);                                   // bei
    }

    static FourTensors scale_shift(const Tensor& dy, const MaybeTensor& dresidual,
                                   const Tensor& normalized, const Tensor& gamma,
                                   const MaybeTensor& dlinear) {
        static const auto op =
            tempo_op<decltype(scale_shift_backward<Cpu>)>("tempo::scale_shift_backward");
        return op.call(dy, dresidual, normalized, gamma, dlinear);
    }
    /// The gradients of the residual and of the linear layer before the dropout.
    TwoTensors norm(const Tensor& dnormalized, std::size_t centered, DropoutSite site) const {
        static const auto op =
            tempo_op<decltype(residual_norm_backward<Cpu>)>("tempo::residual_norm_backward");
        return op.call(dnormalized, k_[centered], k_[centered + 1], k_[centered + 2],
                       call_.hidden_p, kMasks, call_.key_of(site));
    }
    TwoTensors inner(const Tensor& dresult) const {
        static const auto op =
            tempo_op<decltype(bias_dropout_backward<Cpu>)>("tempo::bias_dropout_backward");
        return op.call(dresult, k_[kUpBiased], std::nullopt, k_[kInnerMask], call_.activation,
                       call_.inner_p, kMasks, call_.key_of(DropoutSite::kFeedForward));
    }
    static Tensor column_sum_of(const Tensor& x) {
        static const auto op = tempo_op<decltype(column_sum<Cpu>)>("tempo::bias_backward");
        return op.call(x);
    }
    /// The gradients of the projection's output and of its bias.
    TwoTensors heads(const Tensor& dcontext) const {
        static const auto softmax_op =
            tempo_op<decltype(softmax_dropout_backward_<Cpu>)>("tempo::softmax_dropout_backward_");
        static const auto heads_op =
            tempo_op<decltype(bias_heads_backward<Cpu>)>("tempo::bias_heads_backward");
        const Tensor dheads = split_heads(dcontext, k_[kQuery], call_.num_heads);
        const Tensor& used = call_.attention_p > 0 ? k_[kDropped] : k_[kProbs];
        Tensor dscores = at::bmm(dheads, k_[kValue].transpose(1, 2));  // dX1gamma
        const Tensor dvalue = at::bmm(used.transpose(1, 2), dheads);   // dX2gamma
        softmax_op.call(dscores, k_[kProbs], k_[kAttentionMask], score_scale(k_[kQuery]),
                        call_.attention_p, kMasks,
                        call_.key_of(DropoutSite::kAttention));            // bs
        const Tensor dquery = at::bmm(dscores, k_[kKey]);                  // dX1QKT
        const Tensor dkey = at::bmm(dscores.transpose(1, 2), k_[kQuery]);  // dX2QKT
        auto [dprojected, dbias] =
            heads_op.call(dquery, dkey, dvalue, call_.num_heads);  // baib, and back to rows
        return {dprojected.view_symint({-1, dprojected.sym_size(2)}), dbias};
    }

    const std::vector<Tensor>& k_;
    const LayerCall& call_;
};

}  // namespace

Gradients backward(const std::vector<Tensor>& kept, const LayerCall& call, const Tensor& dy) {
    return Backward(kept, call).run(dy);
}

}  // namespace models::ops::substation
