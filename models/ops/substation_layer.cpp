// The autograd function of Substation's encoder layer.

#include "models/ops/substation_layer.h"

#include "models/observer/observer.h"
#include "models/ops/once_differentiable.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using namespace substation;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
        Tensor y = substation::forward(weights, call, x, additive_mask, kept);
        ctx->save_for_backward(kept);
        keep_layer_call(*ctx, call);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto kept = ctx->get_saved_variables();
        const LayerCall call = kept_layer_call(*ctx);
        return once_differentiable("tempo::substation_layer", grads, [&]() -> variable_list {
            const substation::Gradients g = substation::backward(kept, call, grads[0]);
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
