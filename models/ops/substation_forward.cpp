#include "models/observer/observer.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/substation_layer.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

#include <cmath>

namespace models::ops::substation {
namespace {

Tensor named(const Tensor& tensor, std::string_view name) {
    name_tensor(tensor, name);
    return tensor;
}

/// [B*A, S, D] -> [B*S, H].
Tensor merge_heads(const Tensor& heads, int64_t num_heads) {
    const c10::SymInt seq_len = heads.sym_size(1), head_dim = heads.sym_size(2);
    return heads.view_symint({-1, num_heads, seq_len, head_dim})
        .transpose(1, 2)
        .reshape_symint({-1, num_heads * head_dim});
}

/// The layer in forward: each function is one block of the paper's figure.
class Forward {
public:
    Forward(const Weights& weights, const LayerCall& call, std::vector<Tensor>& kept)
        : w_(weights), call_(call), kept_(kept) {}

    Tensor run(const Tensor& x, const MaybeTensor& additive_mask) {
        const Tensor input = x.contiguous();
        kept_[kInput] = input;
        const Tensor rows = input.view_symint({-1, input.sym_size(2)});
        attention(input, additive_mask);
        {
            const ModuleScope module_path("attention.output");
            Tensor biased = at::mm(kept_[kContext], w_.output.weight.t());  // out
            kept_[kAttentionBiased] = named(biased, "attention_dense");
            kept_[kAttentionResult] = norm(
                biased, biased, w_.output.bias, rows, w_.first_norm, DropoutSite::kAttentionOutput,
                kFirstNormalized);  // bdrln: the sum with the bias overwrites its input
            name_tensor(kept_[kAttentionResult], "attention_output");
        }
        feed_forward();
        const ModuleScope module_path("output");
        kept_[kDown] = named(at::mm(kept_[kInnerResult], w_.down.weight.t()), "down");  // lin2
        kept_[kDownBiased] = named(at::empty_like(kept_[kDown]), "output_dense");
        return norm(kept_[kDown], kept_[kDownBiased], w_.down.bias, kept_[kAttentionResult],
                    w_.second_norm, DropoutSite::kOutput, kSecondNormalized)  // bdrln
            .view_symint(input.sym_sizes());
    }

private:
    void attention(const Tensor& input, const MaybeTensor& additive_mask) {
        static const auto heads_op =
            tempo_op<decltype(bias_heads_forward<Cpu>)>("tempo::bias_heads_forward");
        static const auto softmax_op =
            tempo_op<decltype(softmax_dropout_forward<Cpu>)>("tempo::softmax_dropout_forward");
        const ModuleScope module_path("attention.self");
        kept_[kProjected] =
            named(at::mm(input.view_symint({-1, input.sym_size(2)}), w_.projection.weight.t()),
                  "projected");  // QKV-fused
        const Tensor projected =
            kept_[kProjected].view_symint({input.sym_size(0), input.sym_size(1), -1});
        std::tie(kept_[kQuery], kept_[kKey], kept_[kValue]) =
            heads_op.call(projected, w_.projection.bias, call_.num_heads);  // aib
        name_tensor(kept_[kQuery], "query");
        name_tensor(kept_[kKey], "key");
        name_tensor(kept_[kValue], "value");
        kept_[kScores] =
            named(at::bmm(kept_[kQuery], kept_[kKey].transpose(1, 2)), "attention_scores");  // QKT
        std::tie(kept_[kProbs], kept_[kDropped], kept_[kAttentionMask]) =
            softmax_op.call(kept_[kScores], additive_mask, score_scale(kept_[kQuery]), false,
                            call_.num_heads, call_.attention_p, kMasks,
                            call_.key_of(DropoutSite::kAttention));  // softmax
        name_tensor(kept_[kProbs], "attention_probs");
        name_tensor(kept_[kDropped], "dropped_probs");
        name_tensor(kept_[kAttentionMask], "keep_mask");
        const Tensor& used = call_.attention_p > 0 ? kept_[kDropped] : kept_[kProbs];
        kept_[kContext] = named(merge_heads(at::bmm(used, kept_[kValue]), call_.num_heads),
                                "context");  // gamma
    }

    void feed_forward() {
        static const auto op =
            tempo_op<decltype(bias_dropout_forward<Cpu>)>("tempo::bias_dropout_forward");
        const ModuleScope module_path("intermediate");
        kept_[kUp] = named(at::mm(kept_[kAttentionResult], w_.up.weight.t()), "up");  // lin1
        std::tie(kept_[kInnerResult], kept_[kUpBiased], kept_[kInnerMask]) =
            op.call(kept_[kUp], w_.up.bias, std::nullopt, call_.activation, true, call_.inner_p,
                    kMasks, call_.key_of(DropoutSite::kFeedForward));  // bad
        name_tensor(kept_[kUpBiased], "activation_input");
        name_tensor(kept_[kInnerMask], "keep_mask");
        name_tensor(kept_[kInnerResult], "activation_output");
    }

    /// LayerNorm(residual + dropout(x + bias)); x̂, sum - mean, rstd and the mask are kept
    /// from `first` on.
    Tensor norm(const Tensor& x, Tensor& biased, const Tensor& bias, const Tensor& residual,
                const Affine& affine, DropoutSite site, std::size_t first) {
        static const auto op = tempo_op<decltype(bias_residual_norm_forward<Cpu>)>(
            "tempo::bias_residual_norm_forward");
        Tensor y;
        std::tie(y, kept_[first], kept_[first + 1], kept_[first + 2], kept_[first + 3]) =
            op.call(x, bias, residual, affine.weight, affine.bias, biased, call_.hidden_p, kMasks,
                    call_.key_of(site), call_.eps);
        name_tensor(kept_[first], "normalized");
        name_tensor(kept_[first + 1], "centered");
        name_tensor(kept_[first + 2], "rstd");
        name_tensor(kept_[first + 3], "keep_mask");
        return y;
    }

    const Weights& w_;
    const LayerCall& call_;
    std::vector<Tensor>& kept_;
};

}  // namespace

Tensor forward(const Weights& weights, const LayerCall& call, const Tensor& x,
               const MaybeTensor& additive_mask, std::vector<Tensor>& kept) {
    return Forward(weights, call, kept).run(x, additive_mask);
}

double score_scale(const Tensor& query) {
    return 1.0 / std::sqrt(static_cast<double>(query.size(2)));
}

}  // namespace models::ops::substation
