#include "models/layers/transformer_layer.h"

#include "models/config/switches.h"
#include "models/layers/fused_attention.h"
#include "models/observer/observer.h"
#include "models/ops/checkpoint.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/split.h>
#include <fmt/ranges.h>

#include <cmath>

namespace models {
namespace {

/// Hugging Face's module names in a layer of one family.
struct Names {
    std::string layer;  // prefix of the layer's index
    std::string attention, attention_output, attention_dropout, attention_norm;
    std::string up, activation, down, output_dropout, output_norm;
    std::string attention_sum, output_sum;  // what adds a residual; empty: the layer itself
};

const Names& names_of(Family family) {
    static const Names bert{.layer = "encoder.layer.",
                            .attention = "attention.self",
                            .attention_output = "attention.output.dense",
                            .attention_dropout = "attention.output.dropout",
                            .attention_norm = "attention.output.LayerNorm",
                            .up = "intermediate.dense",
                            .activation = "intermediate.intermediate_act_fn",
                            .down = "output.dense",
                            .output_dropout = "output.dropout",
                            .output_norm = "output.LayerNorm",
                            .attention_sum = "attention.output",
                            .output_sum = "output"};
    static const Names gpt2{.layer = "h.",
                            .attention = "attn",
                            .attention_output = "attn.c_proj",
                            .attention_dropout = "attn.resid_dropout",
                            .attention_norm = "ln_1",
                            .up = "mlp.c_fc",
                            .activation = "mlp.act",
                            .down = "mlp.c_proj",
                            .output_dropout = "mlp.dropout",
                            .output_norm = "ln_2",
                            .attention_sum = {},
                            .output_sum = {}};
    return family == Family::kGpt2 ? gpt2 : bert;
}

std::string layer_name(const Workload& workload, int64_t index) {
    return names_of(workload.model.family).layer + std::to_string(index);
}

/// The MLP's activation, in the words of the ops.
std::string_view activation_of(Family family) {
    switch (family) {
        case Family::kBert:
            return "gelu";
        case Family::kGpt2:
            return "tanh_gelu";
        case Family::kSubstation:
        case Family::kT5Encoder:
        case Family::kT5Decoder:
            return "relu";
    }
    return "gelu";
}

/// Query, key and value in groups: the projections of a group are one product.
std::vector<std::vector<std::string>> projection_groups(Qkv qkv) {
    switch (qkv) {
        case Qkv::kModel:
        case Qkv::kSeparate:
            break;
        case Qkv::kQueryKey:
            return {{"query", "key"}, {"value"}};
        case Qkv::kKeyValue:
            return {{"query"}, {"key", "value"}};
        case Qkv::kFused:
            return {{"query", "key", "value"}};
    }
    return {{"query"}, {"key"}, {"value"}};
}

/// What the recipe's choice is in this model.
Qkv qkv_of(const Workload& workload) {
    const Recipe& recipe = workload.recipe;
    if (recipe.qkv != Qkv::kModel) return recipe.qkv;
    const bool is_stacked = workload.model.family == Family::kGpt2 ||
                            recipe.fusion == Fusion::kSubstation ||
                            recipe.fusion == Fusion::kDeepSpeed;
    return is_stacked ? Qkv::kFused : Qkv::kSeparate;
}

/// [B, A, S, D] -> dense [B*A, S, D]: a copy, so that the projection's output is freed.
Tensor dense_heads(const Tensor& heads) {
    return heads.contiguous().view({-1, heads.size(2), heads.size(3)});
}

/// [B, A, S, D] -> [B, S, H].
Tensor merge_heads(const Tensor& context) {
    const Tensor by_token = context.transpose(1, 2);
    Tensor merged = by_token.reshape({by_token.size(0), by_token.size(1), -1});
    name_tensor(merged, "context");
    return merged;
}

}  // namespace

// ---- attention -------------------------------------------------------------------------------

SelfAttention::SelfAttention(ParameterStore& store, const std::string& prefix,
                             const Workload& workload, int64_t layer)
    : module_path_(names_of(workload.model.family).attention),
      model_(workload.model),
      variant_(workload.recipe.attention),
      fusion_(workload.recipe.fusion),
      checkpoint_(workload.recipe.checkpoint),
      fp32_softmax_(is_autocast(workload.precision)),
      dropout_("dropout", workload, workload.model.attention_dropout_p, layer,
               DropoutSite::kAttention) {
    const int64_t hidden = model_.hidden_size;
    const std::string inner = prefix + module_path_ + ".";
    for (const std::vector<std::string>& group : projection_groups(qkv_of(workload))) {
        const auto num_parts = static_cast<int64_t>(group.size());
        const bool is_c_attn = model_.family == Family::kGpt2 && num_parts == 3;
        const std::string name = is_c_attn ? "c_attn" : fmt::format("{}", fmt::join(group, "_"));
        projections_.emplace_back(store, inner, name, hidden, num_parts * hidden,
                                  Linear::Form{.num_parts = num_parts});
    }
}

Tensor SelfAttention::operator()(const Tensor& x, const ForwardContext& context) const {
    const ModuleScope module_path(module_path_);
    const bool has_core = variant_ == Attention::kEager || variant_ == Attention::kRecomputeDropout;
    if (fusion_ == Fusion::kDeepSpeed && has_core) {
        const Linear& projection = stacked_projection();
        return by_core(
            ops::bias_heads(projection.without_bias(x), projection.bias(), model_.num_heads),
            context);
    }
    switch (variant_) {
        case Attention::kEager:
            return eager(dense(project(x)), context);
        case Attention::kRecomputeDropout:
            return by_core(dense(project(x)), context);
        case Attention::kFlash:
        case Attention::kEfficient:
        case Attention::kCudnn:
            return fused(project(x), context);
    }
    TORCH_CHECK(false, "not an attention");
}

SelfAttention::Heads SelfAttention::project(const Tensor& x) const {
    const auto heads = [&](const Tensor& t) {  // [B, S, H] -> [B, A, S, D]
        return t.view({t.size(0), t.size(1), model_.num_heads, model_.head_dim()}).transpose(1, 2);
    };
    std::vector<Tensor> parts;  // query, key, value, each [B, S, H]
    for (const Linear& projection : projections_) {
        const Tensor projected = projection(x);
        if (projected.size(-1) == model_.hidden_size) {
            parts.push_back(projected);
            continue;
        }
        for (Tensor& part : at::split(projected, model_.hidden_size, -1)) {
            parts.push_back(std::move(part));
        }
    }
    return {heads(parts[0]), heads(parts[1]), heads(parts[2])};
}

ops::Heads SelfAttention::dense(const Heads& heads) const {
    return {dense_heads(heads.query), dense_heads(heads.key), dense_heads(heads.value)};
}

Tensor SelfAttention::eager(const ops::Heads& heads, const ForwardContext& context) const {
    name_tensor(heads.query, "query");
    name_tensor(heads.key, "key");
    name_tensor(heads.value, "value");
    if (checkpoint_ != Checkpoint::kAttentionCore) return eager_core(heads, context);
    // Selective recomputation (Korthikanti et al. 2022, arXiv 2205.05198, section 5): of what
    // attention saves, only the heads, and nothing of size [B, A, S, S].
    const std::string path = ModuleScope::current();
    const auto run = [this, context, path](at::TensorList inputs) {
        const RootModuleScope module_path(path);
        return eager_core({inputs[0], inputs[1], inputs[2]}, context);
    };
    return ops::checkpoint(path, run, {heads.query, heads.key, heads.value});
}

/// The textbook form: each step writes a tensor, and autograd saves three of size [B, A, S, S].
Tensor SelfAttention::eager_core(const ops::Heads& heads, const ForwardContext& context) const {
    const auto& [query, key, value] = heads;  // [B*A, S, D]
    const int64_t batch_size = query.size(0) / model_.num_heads;
    const int64_t seq_len = query.size(1);
    const std::vector<int64_t> by_head{batch_size, model_.num_heads, seq_len, -1};

    Tensor scores;  // [B*A, S, S]
    {
        const ModuleScope module_path("scores");
        scores = at::bmm(query, key.transpose(1, 2));
        scores.mul_(1.0 / std::sqrt(static_cast<double>(model_.head_dim())));
        if (context.additive_mask) {
            // _unsafe_view, since autograd tracks an ordinary view: the backward of an in-place
            // addition on it (CopySlices) copies the whole gradient twice.
            scores = at::_unsafe_view(scores, by_head);  // [B, A, S, S]
            scores.add_(context.additive_mask->view({batch_size, 1, 1, seq_len}));
            scores = at::_unsafe_view(scores, {-1, seq_len, seq_len});  // [B*A, S, S]
        }
        if (context.causal_mask) scores.add_(*context.causal_mask);
    }
    Tensor probs;  // [B*A, S, S]
    {
        const ModuleScope module_path("softmax");
        probs = softmax(scores);
        name_tensor(probs, "attention_probs");
    }
    scores.reset();
    const Tensor dropped = dropout_(probs, context);  // [B*A, S, S]
    if (dropout_.p() > 0) name_tensor(dropped, "dropped_probs");
    const ModuleScope module_path("context");
    return merge_heads(at::bmm(dropped, value).view(by_head));  // [B, S, H]
}

/// Tempo's sub-layer dropout recomputation: saves the probabilities and the mask, not the dropped
/// probabilities. DeepSpeed's layer without its flag for it saves those too.
Tensor SelfAttention::by_core(const ops::Heads& heads, const ForwardContext& context) const {
    const auto& [query, key, value] = heads;  // [B*A, S, D]
    const int64_t seq_len = query.size(1);
    name_tensor(query, "query");
    name_tensor(key, "key");
    name_tensor(value, "value");

    Tensor scores;  // [B*A, S, S]
    {
        const ModuleScope module_path("scores");
        scores = at::bmm(query, key.transpose(1, 2));
    }
    const ModuleScope module_path("core");
    const Tensor merged =
        ops::attention_core(scores, value, context.additive_mask,
                            {.scale = 1.0 / std::sqrt(static_cast<double>(model_.head_dim())),
                             .causal = model_.family == Family::kGpt2,
                             .num_heads = model_.num_heads,
                             .dropout = dropout_.spec(context),
                             .recompute = variant_ != Attention::kEager});  // [B*A, S, D]
    return merge_heads(merged.view({-1, model_.num_heads, seq_len, model_.head_dim()}));
}

Tensor SelfAttention::fused(const Heads& heads, const ForwardContext& context) const {
    const ModuleScope module_path(name_of(variant_));
    const FusedAttention attention = fused_attention(variant_, heads.query, heads.key, heads.value,
                                                     {.additive_mask = context.additive_mask,
                                                      .causal = model_.family == Family::kGpt2,
                                                      .dropout_p = dropout_.p()});
    name_tensor(heads.query, "query");
    name_tensor(heads.key, "key");
    name_tensor(heads.value, "value");
    name_tensor(attention.logsumexp, "logsumexp");
    for (const Tensor& state : attention.generator_state) name_tensor(state, "generator_state");
    return merge_heads(attention.out);  // [B, S, H], a view of out
}

/// Under autocast the result is fp32. For half-precision scores, CUDA reads 16 bits and writes 32
/// in one kernel, as torch's composite does there; other devices cast first.
Tensor SelfAttention::softmax(const Tensor& scores) const {
    if (!fp32_softmax_) return at::softmax(scores, -1);
    const bool half_to_float = !scores.is_cpu() && scores.scalar_type() == at::kHalf;
    return half_to_float ? at::_softmax(scores, -1, true) : at::softmax(scores, -1, at::kFloat);
}

// ---- layer -----------------------------------------------------------------------------------

TransformerLayer::TransformerLayer(ParameterStore& store, const Workload& workload, int64_t index)
    : module_path_(layer_name(workload, index)),
      workload_(workload),
      attention_(store, module_path_ + ".", workload, index),
      attention_output_(store, module_path_ + ".", names_of(workload.model.family).attention_output,
                        workload.model.hidden_size, workload.model.hidden_size),
      attention_dropout_(names_of(workload.model.family).attention_dropout, workload,
                         workload.model.hidden_dropout_p, index, DropoutSite::kAttentionOutput),
      attention_norm_(store, module_path_ + ".", names_of(workload.model.family).attention_norm,
                      workload),
      up_(store, module_path_ + ".", names_of(workload.model.family).up, workload.model.hidden_size,
          workload.model.intermediate_size),
      inner_dropout_("intermediate.dropout", workload, workload.model.hidden_dropout_p, index,
                     DropoutSite::kFeedForward),
      down_(store, module_path_ + ".", names_of(workload.model.family).down,
            workload.model.intermediate_size, workload.model.hidden_size),
      output_dropout_(names_of(workload.model.family).output_dropout, workload,
                      workload.model.hidden_dropout_p, index, DropoutSite::kOutput),
      output_norm_(store, module_path_ + ".", names_of(workload.model.family).output_norm,
                   workload) {}

Tensor TransformerLayer::operator()(const Tensor& x, const ForwardContext& context) const {
    const RootModuleScope module_path(module_path_);
    const bool is_pre_norm = workload_.model.family == Family::kGpt2;
    if (workload_.recipe.fusion == Fusion::kSubstation) return substation(x, context);
    if (workload_.recipe.fusion == Fusion::kDeepSpeed) return deepspeed(x, context);
    if (is_fused()) return is_pre_norm ? fused_pre_norm(x, context) : fused_post_norm(x, context);
    return is_pre_norm ? pre_norm(x, context) : post_norm(x, context);
}

/// Vaswani et al. 2017, Figure 1; Devlin et al. 2018.
Tensor TransformerLayer::post_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    Tensor a = attention_output_(attention_(x, context));  // [B, S, H]
    a = add_residual(attention_dropout_(a, context), x,
                     names_of(workload_.model.family).attention_sum);  // [B, S, H]
    name_tensor(a, "attention_residual");
    const Tensor y = attention_norm_(std::exchange(a, {}));  // [B, S, H]
    name_tensor(y, "attention_output");
    Tensor f = add_residual(feed_forward(y, context), y,
                            names_of(workload_.model.family).output_sum);  // [B, S, H]
    name_tensor(f, "output_residual");
    const Tensor z = output_norm_(std::exchange(f, {}));  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

/// Radford et al. 2019: normalization at the input of each sub-block.
Tensor TransformerLayer::pre_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    Tensor normed = attention_norm_(x);  // [B, S, H]
    name_tensor(normed, "ln_1_output");
    const Tensor a = attention_output_(attention_(std::exchange(normed, {}), context));
    const Tensor y = add_residual(attention_dropout_(a, context), x,
                                  names_of(workload_.model.family).attention_sum);  // [B, S, H]
    name_tensor(y, "attention_residual");
    normed = output_norm_(y);  // [B, S, H]
    name_tensor(normed, "ln_2_output");
    const Tensor z = add_residual(feed_forward(std::exchange(normed, {}), context), y,
                                  names_of(workload_.model.family).output_sum);
    name_tensor(z, "hidden_states");
    return z;
}

Tensor TransformerLayer::fused_post_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    const Tensor y = attention_norm_
                         .of_residual(attention_output_(attention_(x, context)), x,
                                      attention_dropout_.spec(context), /*with_sum=*/false)
                         .y;  // [B, S, H]
    name_tensor(y, "attention_output");
    const Tensor z = output_norm_
                         .of_residual(mlp(y, context), y, output_dropout_.spec(context),
                                      /*with_sum=*/false)
                         .y;  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

/// Only the LayerNorm in the middle follows a dropout and a residual of the same layer.
Tensor TransformerLayer::fused_pre_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    Tensor normed = attention_norm_(x);  // [B, S, H]
    name_tensor(normed, "ln_1_output");
    auto [second, y] =
        output_norm_.of_residual(attention_output_(attention_(std::exchange(normed, {}), context)),
                                 x, attention_dropout_.spec(context), /*with_sum=*/true);
    name_tensor(y, "attention_residual");
    name_tensor(second, "ln_2_output");
    const Tensor z = add_residual(feed_forward(std::exchange(second, {}), context), y,
                                  names_of(workload_.model.family).output_sum);
    name_tensor(z, "hidden_states");
    return z;
}

/// One op: its backward fuses across the boundaries of modules.
Tensor TransformerLayer::substation(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    const Linear& projection = attention_.stacked_projection();
    const Tensor z = ops::substation_layer(x,
                                           {.projection = projection.weight(),
                                            .projection_bias = projection.bias(),
                                            .attention_output = attention_output_.weight(),
                                            .attention_output_bias = attention_output_.bias(),
                                            .first_gamma = attention_norm_.gamma(),
                                            .first_beta = attention_norm_.beta(),
                                            .up = up_.weight(),
                                            .up_bias = up_.bias(),
                                            .down = down_.weight(),
                                            .down_bias = down_.bias(),
                                            .second_gamma = output_norm_.gamma(),
                                            .second_beta = output_norm_.beta()},
                                           context.additive_mask,
                                           {.activation = activation_of(workload_.model.family),
                                            .num_heads = workload_.model.num_heads,
                                            .eps = workload_.model.layer_norm_eps,
                                            .attention_p = attention_.dropout().p(),
                                            .inner_p = workload_.model.inner_dropout_p(),
                                            .hidden_p = output_dropout_.p(),
                                            .key = attention_.dropout().spec(context).key});
    name_tensor(z, "hidden_states");
    return z;
}

/// Source: csrc/transformer/ds_transformer_cuda.cpp in microsoft/DeepSpeed. Its layer adds a bias,
/// drops and adds the residual in one kernel, and normalizes in another.
Tensor TransformerLayer::deepspeed(const Tensor& x, const ForwardContext& context) const {
    const auto add = [&](const Linear& linear, const Tensor& branch, const Tensor& residual,
                         const DropoutModule& dropout) {
        const ModuleScope module_path(dropout.module_path());
        return ops::bias_dropout_residual(branch, linear.bias(), residual, dropout.spec(context));
    };
    name_tensor(x, "hidden_states");
    Tensor a = add(attention_output_, attention_output_.without_bias(attention_(x, context)), x,
                   attention_dropout_);  // [B, S, H]
    name_tensor(a, "attention_residual");
    const Tensor y = attention_norm_(std::exchange(a, {}));  // [B, S, H]
    name_tensor(y, "attention_output");
    Tensor f = add(down_, deepspeed_mlp(y), y, output_dropout_);  // [B, S, H]
    name_tensor(f, "output_residual");
    const Tensor z = output_norm_(std::exchange(f, {}));  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

/// Without the bias of the second linear layer.
Tensor TransformerLayer::deepspeed_mlp(const Tensor& x) const {
    const std::string_view act = activation_of(workload_.model.family);
    Tensor f = up_.without_bias(x);  // [B, S, I]
    name_tensor(f, "gelu_input");
    if (workload_.recipe.gelu == Gelu::kRecompute) {
        const ModuleScope module_path(down_.module_path());
        return ops::bias_activation_linear(f, up_.bias(), down_.weight(), act);
    }
    {
        const ModuleScope module_path(names_of(workload_.model.family).activation);
        f = ops::bias_activation(f, up_.bias(), act);
        name_tensor(f, "gelu_output");
    }
    return down_.without_bias(f);
}

Tensor TransformerLayer::mlp(const Tensor& x, const ForwardContext& context) const {
    const Family family = workload_.model.family;
    if (is_fused()) {
        Tensor f = up_.without_bias(x);  // [B, S, I]
        {
            const ModuleScope module_path(names_of(family).activation);
            f = ops::bias_gelu(f, up_.bias(), family == Family::kGpt2,
                               mask_kind(workload_.recipe.masks));
            name_tensor(f, "gelu_output");
        }
        return down_(f);  // [B, S, H]
    }
    Tensor f = up_(x);  // [B, S, I]
    name_tensor(f, "gelu_input");
    if (workload_.recipe.gelu == Gelu::kRecompute && family != Family::kSubstation) {
        const ModuleScope module_path(down_.module_path());
        return ops::gelu_linear(f, down_.weight(), down_.bias(), family == Family::kGpt2);
    }
    {
        const ModuleScope module_path(names_of(family).activation);
        f = activation(f, workload_);
        name_tensor(f, family == Family::kSubstation ? "relu_output" : "gelu_output");
    }
    if (family == Family::kSubstation) {
        f = inner_dropout_(f, context);
        if (inner_dropout_.p() > 0) name_tensor(f, "dropped_relu");
    }
    return down_(f);  // [B, S, H]
}

Tensor TransformerLayer::feed_forward(const Tensor& x, const ForwardContext& context) const {
    return output_dropout_(mlp(x, context), context);  // [B, S, H]
}

}  // namespace models
