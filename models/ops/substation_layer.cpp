// Substation's encoder layer: twelve fused kernels between its matrix multiplications, in the order
// of its operators (config_selection/ops.py in spcl/substation; Ivanov et al., MLSys 2021, arXiv
// 2007.00072). Its names stand at the end of the lines that run a kernel.
//
// It keeps every tensor that forward writes: 34 n + 4 T elements, masks in the type of the layer,
// and rstd.

#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/column_pass_kernels.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::string_view kMasks = "element";

/// A linear layer, or a LayerNorm's gamma and beta.
struct Affine {
    Tensor weight, bias;
};

/// Everything that the layer computes with beside its input.
struct Weights {
    Affine projection, output, first_norm, up, down, second_norm;
};

struct LayerCall {
    std::string module_path;  // of the layer, for backward
    std::string activation;
    int64_t num_heads = 1;
    double eps = 1e-5;
    double attention_p = 0, inner_p = 0, hidden_p = 0;
    std::array<c10::SymInt, 5> key;  // of attention's dropout

    /// The key of a dropout of the layer.
    std::array<c10::SymInt, 5> key_of(DropoutSite site) const {
        static_assert(static_cast<uint32_t>(DropoutSite::kAttention) == 0,
                      "`key` is the key of attention, and a site is added to it");
        auto result = key;
        result.back() = result.back() + static_cast<int64_t>(site);
        return result;
    }
};

/// What the layer keeps for backward beside its input and its weights, in the order of forward.
enum Kept : std::size_t {
    kInput,
    kProjected,
    kQuery,
    kKey,
    kValue,
    kScores,
    kProbs,
    kAttentionMask,
    kDropped,
    kContext,
    kAttentionBiased,
    kFirstNormalized,
    kFirstCentered,
    kFirstRstd,
    kFirstMask,
    kAttentionResult,
    kUp,
    kUpBiased,
    kInnerMask,
    kInnerResult,
    kDown,
    kDownBiased,
    kSecondNormalized,
    kSecondCentered,
    kSecondRstd,
    kSecondMask,
    kProjectionWeight,
    kOutputWeight,
    kFirstGamma,
    kUpWeight,
    kDownWeight,
    kSecondGamma,
    kNumKept
};

/// 1 / √D, from query [B*A, S, D].
double score_scale(const Tensor& query) {
    return 1.0 / std::sqrt(static_cast<double>(query.size(2)));
}

// ---- forward ---------------------------------------------------------------------------------

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

// ---- backward --------------------------------------------------------------------------------

struct Gradients {
    Tensor x;
    Weights weights;
};

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

// ---- the autograd function -------------------------------------------------------------------

void keep_layer_call(AutogradContext& ctx, const LayerCall& call) {
    ctx.saved_data["module_path"] = call.module_path;
    ctx.saved_data["activation"] = call.activation;
    ctx.saved_data["num_heads"] = call.num_heads;
    ctx.saved_data["attention_p"] = call.attention_p;
    ctx.saved_data["inner_p"] = call.inner_p;
    ctx.saved_data["hidden_p"] = call.hidden_p;
    keep_call(ctx, {.p = 0, .mask_kind = kernels::MaskKind::kElement, .key = call.key});
}

LayerCall kept_layer_call(const AutogradContext& ctx) {
    const auto& data = ctx.saved_data;
    return {.module_path = data.at("module_path").toStringRef(),
            .activation = data.at("activation").toStringRef(),
            .num_heads = data.at("num_heads").toInt(),
            .attention_p = data.at("attention_p").toDouble(),
            .inner_p = data.at("inner_p").toDouble(),
            .hidden_p = data.at("hidden_p").toDouble(),
            .key = kept_call(ctx).key};
}

/// Inputs: x, then weight and bias (gamma and beta) of each part in the order of Weights.
struct SubstationLayerFunction : torch::autograd::Function<SubstationLayerFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w0, const Tensor& b0,
                          const Tensor& w1, const Tensor& b1, const Tensor& g1, const Tensor& s1,
                          const Tensor& w2, const Tensor& b2, const Tensor& w3, const Tensor& b3,
                          const Tensor& g2, const Tensor& s2, const MaybeTensor& additive_mask,
                          const LayerCall& call) {
        at::AutoDispatchBelowADInplaceOrView guard;
        const Weights weights{.projection = {w0, b0},
                              .output = {w1, b1},
                              .first_norm = {g1, s1},
                              .up = {w2, b2},
                              .down = {w3, b3},
                              .second_norm = {g2, s2}};
        std::vector<Tensor> kept(kNumKept);
        kept[kProjectionWeight] = w0;
        kept[kOutputWeight] = w1;
        kept[kFirstGamma] = g1;
        kept[kUpWeight] = w2;
        kept[kDownWeight] = w3;
        kept[kSecondGamma] = g2;
        Tensor y = Forward(weights, call, kept).run(x, additive_mask);
        ctx->save_for_backward(kept);
        keep_layer_call(*ctx, call);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto kept = ctx->get_saved_variables();
        const LayerCall call = kept_layer_call(*ctx);
        return once_differentiable("tempo::substation_layer", grads, [&]() -> variable_list {
            const Gradients g = Backward(kept, call).run(grads[0]);
            variable_list result{g.x};
            const Weights& w = g.weights;
            for (const Affine* part :
                 {&w.projection, &w.output, &w.first_norm, &w.up, &w.down, &w.second_norm}) {
                result.push_back(part->weight);
                result.push_back(part->bias);
            }
            result.resize(result.size() + 2);  // additive_mask and call
            return result;
        });
    }
};

/// Weights are [3H, H], [H, H], [I, H] and [H, I].
void check_layer(const Tensor& x, at::TensorList weights, at::TensorList biases,
                 int64_t num_heads) {
    const c10::SymInt size = x.sym_size(2);
    TORCH_CHECK(num_heads > 0 && size % num_heads == 0, "tempo: num_heads is ", num_heads,
                "; expected a divisor of the last dimension of x, ", size);
    check_weight(weights[2], "weights[2]", size, x);
    const c10::SymInt inner = weights[2].sym_size(0);
    const c10::SymInt inputs[] = {size, size, size, inner};
    const c10::SymInt outputs[] = {3 * size, size, inner, size};
    for (std::size_t i = 0; i < 4; ++i) {
        const std::string index = "[" + std::to_string(i) + "]";
        const std::string name = "weights" + index;
        check_weight(weights[i], name.c_str(), inputs[i], x);
        TORCH_CHECK(weights[i].sym_size(0) == outputs[i], "tempo: ", name, " has shape ",
                    weights[i].sym_sizes(), "; expected [", outputs[i], ", ", inputs[i], "]");
        check_bias(biases[i], ("biases" + index).c_str(), weights[i]);
    }
}

Tensor substation_layer_op(const Tensor& x, at::TensorList weights, at::TensorList biases,
                           at::TensorList gammas, at::TensorList betas,
                           const MaybeTensor& additive_mask, std::string_view activation,
                           int64_t num_heads, double eps, double attention_p, double inner_p,
                           double hidden_p, c10::SymIntArrayRef key) {
    check_floating(x, "x");
    TORCH_CHECK(x.dim() == 3, "tempo: x has shape ", x.sym_sizes(),
                "; expected [batch, tokens, H]");
    TORCH_CHECK(
        weights.size() == 4 && biases.size() == 4 && gammas.size() == 2 && betas.size() == 2,
        "tempo: substation_layer takes four weights and biases, two gammas and betas");
    check_layer(x, weights, biases, num_heads);
    check_is_constant(additive_mask);
    const DropoutCall drop = dropout_call(attention_p, kMasks, key);
    return SubstationLayerFunction::apply(x, weights[0], biases[0], weights[1], biases[1],
                                          gammas[0], betas[0], weights[2], biases[2], weights[3],
                                          biases[3], gammas[1], betas[1], additive_mask,
                                          LayerCall{.module_path = ModuleScope::current(),
                                                    .activation = std::string(activation),
                                                    .num_heads = num_heads,
                                                    .eps = eps,
                                                    .attention_p = attention_p,
                                                    .inner_p = inner_p,
                                                    .hidden_p = hidden_p,
                                                    .key = drop.key});
}

}  // namespace

Tensor substation_layer(const Tensor& x, const EncoderWeights& w,
                        const std::optional<Tensor>& additive_mask, const EncoderSpec& spec) {
    static const auto op = tempo_op<decltype(substation_layer_op)>("tempo::substation_layer");
    const Tensor weights[] = {w.projection, w.attention_output, w.up, w.down};
    const Tensor biases[] = {w.projection_bias, w.attention_output_bias, w.up_bias, w.down_bias};
    const Tensor gammas[] = {w.first_gamma, w.second_gamma};
    const Tensor betas[] = {w.first_beta, w.second_beta};
    return op.call(x, weights, biases, gammas, betas, additive_mask, spec.activation,
                   spec.num_heads, spec.eps, spec.attention_p, spec.inner_p, spec.hidden_p,
                   key_array(spec.key));
}

TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) {
    m.impl("substation_layer", substation_layer_op);
}

}  // namespace models::ops
