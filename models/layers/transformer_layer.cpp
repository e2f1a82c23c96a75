#include "models/layers/modules.h"

#include "models/config/switches.h"
#include "models/layers/t5_layer.h"
#include "models/observer/observer.h"
#include "models/ops/checkpoint.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/split.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace models {
namespace {

/// Query, key and value in groups: the projections of a group are one product.
std::vector<std::vector<std::string_view>> projection_groups(const FamilyTraits& traits, Qkv qkv) {
    const auto& [query, key, value] = traits.projections;
    switch (qkv) {
        case Qkv::kModel:
        case Qkv::kSeparate:
            break;
        case Qkv::kQueryKey:
            return {{query, key}, {value}};
        case Qkv::kKeyValue:
            return {{query}, {key, value}};
        case Qkv::kFused:
            return {{query, key, value}};
    }
    return {{query}, {key}, {value}};
}

/// What the recipe's choice is in this model.
Qkv qkv_of(const Workload& workload) {
    const Recipe& recipe = workload.recipe;
    if (recipe.qkv != Qkv::kModel) return recipe.qkv;
    const bool is_stacked = !workload.model.traits().stacked_projection.empty() ||
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

// ---- attention that never writes its probabilities ---------------------------------------------

struct FusedAttentionOptions {
    std::optional<Tensor> additive_mask;  // [B, S]; not with flash
    bool causal = false;
    double dropout_p = 0;  // the backend draws its own mask; not with flash on the CPU
};

struct FusedAttention {
    Tensor out;        // [B, A, S, D], a view of [B, S, A, D]
    Tensor logsumexp;  // saved for backward
    // Saved too: from where the kernel's dropout drew. Flash attention and cuDNN on CUDA keep it,
    // also without dropout.
    std::vector<Tensor> generator_state;
};

FusedAttention flash_on_cpu(const Tensor& query, const Tensor& key, const Tensor& value,
                            const FusedAttentionOptions& options) {
    std::optional<Tensor> mask;
    if (options.additive_mask) {
        mask = options.additive_mask->view({query.size(0), 1, 1, query.size(2)});
    }
    auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0,
                                                                            options.causal, mask);
    return {.out = out, .logsumexp = logsumexp, .generator_state = {}};
}

/// [B, S] -> [B, A, S, S] without copies, in the dtype of the query; rows padded to a multiple of
/// 16 elements, as scaled_dot_product_attention pads them for the kernels' loads (pad_bias in
/// torch's attention.cpp).
std::optional<Tensor> attention_bias(const std::optional<Tensor>& mask, const Tensor& query) {
    if (!mask) return std::nullopt;
    constexpr int64_t kMultiple = 16;
    const int64_t seq_len = query.size(2);
    Tensor bias = mask->to(query.scalar_type());
    if (seq_len % kMultiple != 0) {
        bias = at::constant_pad_nd(bias, {0, kMultiple - seq_len % kMultiple});
        name_tensor(bias, "attention_bias");
        bias = bias.slice(/*dim=*/1, /*start=*/0, /*end=*/seq_len);
    }
    return bias.unsqueeze(1).unsqueeze(1).expand({query.size(0), query.size(1), seq_len, seq_len});
}

/// Each backend of scaled_dot_product_attention is called by its own op, because the composite op
/// would choose one itself.
///
/// query, key and value are [B, A, S, D], transposed views of [B, S, A, D]. Dense tensors would
/// give a dense `out`, which would have to be copied. `backend` is kFlash, kEfficient or kCudnn;
/// the last two exist on CUDA only.
FusedAttention fused_attention(Attention backend, const Tensor& query, const Tensor& key,
                               const Tensor& value, const FusedAttentionOptions& options) {
    constexpr bool kForBackward = true;  // also computes logsumexp
    const double p = options.dropout_p;
    if (backend == Attention::kFlash && query.is_cpu()) {
        return flash_on_cpu(query, key, value, options);
    }
    switch (backend) {
        case Attention::kFlash: {
            TORCH_CHECK(!options.additive_mask, "flash attention has no padding mask on CUDA");
            const auto result = at::_scaled_dot_product_flash_attention(query, key, value, p,
                                                                        options.causal, false);
            return {std::get<0>(result),
                    std::get<1>(result),
                    {std::get<6>(result), std::get<7>(result)}};
        }
        case Attention::kEfficient: {
            const auto result = at::_scaled_dot_product_efficient_attention(
                query, key, value, attention_bias(options.additive_mask, query), kForBackward, p,
                options.causal);
            return {std::get<0>(result), std::get<1>(result), {}};
        }
        case Attention::kCudnn: {
            const auto result = at::_scaled_dot_product_cudnn_attention(
                query, key, value, attention_bias(options.additive_mask, query), kForBackward, p,
                options.causal, false);
            return {std::get<0>(result),
                    std::get<1>(result),
                    {std::get<6>(result), std::get<7>(result)}};
        }
        case Attention::kEager:
        case Attention::kRecomputeDropout:
            break;
    }
    TORCH_CHECK(false, "not a fused attention");
}

// ---- attention -------------------------------------------------------------------------------

/// Multi-head self-attention from the layer's input to its context, in the variant of the recipe.
class SelfAttention {
public:
    SelfAttention(ParameterStore& store, const std::string& prefix, const Workload& workload,
                  int64_t layer);
    Tensor operator()(const Tensor& x, const ForwardContext& context) const;  // [B, S, H] -> same

    /// Query, key and value in one, for layers that compute them so.
    const Linear& stacked_projection() const { return projections_.front(); }
    const DropoutModule& dropout() const { return dropout_; }

private:
    struct Heads {
        Tensor query, key, value;
    };
    /// [B, A, S, D] views of the projections.
    Heads project(const Tensor& x) const;
    /// Dense [B*A, S, D].
    ops::Heads dense(const Heads& heads) const;
    Tensor eager(const ops::Heads& heads, const ForwardContext& context) const;
    Tensor eager_core(const ops::Heads& heads, const ForwardContext& context) const;
    /// Scores, then softmax, dropout and the product with value by one op.
    Tensor by_core(const ops::Heads& heads, const ForwardContext& context) const;
    Tensor fused(const Heads& heads, const ForwardContext& context) const;
    Tensor softmax(const Tensor& scores) const;

    std::string module_path_;  // "attention.self" or "attn"
    ModelConfig model_;
    Attention variant_;
    Fusion fusion_;
    Checkpoint checkpoint_;
    bool fp32_softmax_;                // autocast computes softmax in fp32
    std::vector<Linear> projections_;  // to query, key and value; several may be one product
    DropoutModule dropout_;
};

SelfAttention::SelfAttention(ParameterStore& store, const std::string& prefix,
                             const Workload& workload, int64_t layer)
    : module_path_(workload.model.traits().attention.attention),
      model_(workload.model),
      variant_(workload.recipe.attention),
      fusion_(workload.recipe.fusion),
      checkpoint_(workload.recipe.checkpoint),
      fp32_softmax_(is_autocast(workload.precision)),
      dropout_("dropout", workload, workload.model.attention_dropout_p, layer,
               DropoutSite::kAttention) {
    const int64_t hidden = model_.hidden_size;
    const std::string inner = prefix + module_path_ + ".";
    const FamilyTraits& traits = model_.traits();
    for (const auto& group : projection_groups(traits, qkv_of(workload))) {
        const auto num_parts = static_cast<int64_t>(group.size());
        std::string name(num_parts == 3 ? traits.stacked_projection : "");
        if (name.empty()) name = fmt::format("{}", fmt::join(group, "_"));
        projections_.emplace_back(
            store, inner, name, hidden, num_parts * hidden,
            Linear::Form{.num_parts = num_parts, .has_bias = traits.has_biases});
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
                             .causal = model_.traits().is_causal,
                             .num_heads = model_.num_heads,
                             .dropout = dropout_.spec(context),
                             .recompute = variant_ != Attention::kEager});  // [B*A, S, D]
    return merge_heads(merged.view({-1, model_.num_heads, seq_len, model_.head_dim()}));
}

Tensor SelfAttention::fused(const Heads& heads, const ForwardContext& context) const {
    const ModuleScope module_path(name_of(variant_));
    const FusedAttention attention = fused_attention(variant_, heads.query, heads.key, heads.value,
                                                     {.additive_mask = context.additive_mask,
                                                      .causal = model_.traits().is_causal,
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

/// One encoder layer (BERT: normalization after the residual) or decoder block (GPT-2: before it).
/// `workload.recipe` is the layer's own.
class TransformerLayer final : public Layer {
public:
    TransformerLayer(ParameterStore& store, const Workload& workload, int64_t index);
    Tensor operator()(const Tensor& x, const ForwardContext& context) const override;
    std::vector<NormModule*> norms() override { return {&attention_norm_, &output_norm_}; }
    const std::string& module_path() const override { return module_path_; }
    Checkpoint checkpoint() const override { return workload_.recipe.checkpoint; }

private:
    Tensor post_norm(const Tensor& x, const ForwardContext& context) const;
    Tensor pre_norm(const Tensor& x, const ForwardContext& context) const;
    /// The same function with dropout, residual and LayerNorm in one op.
    Tensor fused_post_norm(const Tensor& x, const ForwardContext& context) const;
    Tensor fused_pre_norm(const Tensor& x, const ForwardContext& context) const;
    /// The post-LN layer with Substation's and with DeepSpeed's fused kernels.
    Tensor substation(const Tensor& x, const ForwardContext& context) const;
    Tensor deepspeed(const Tensor& x, const ForwardContext& context) const;
    Tensor deepspeed_mlp(const Tensor& x) const;
    /// Linear, activation and linear; feed_forward adds the dropout.
    Tensor mlp(const Tensor& x, const ForwardContext& context) const;
    Tensor feed_forward(const Tensor& x, const ForwardContext& context) const;
    bool is_fused() const { return workload_.recipe.fusion == Fusion::kTempo; }

    const FamilyTraits& traits_;
    std::string module_path_;  // "encoder.layer.3" or "h.3"
    Workload workload_;
    SelfAttention attention_;
    Linear attention_output_;
    DropoutModule attention_dropout_;
    NormModule attention_norm_;
    Linear up_;
    DropoutModule inner_dropout_;
    Linear down_;
    DropoutModule output_dropout_;
    NormModule output_norm_;
};

TransformerLayer::TransformerLayer(ParameterStore& store, const Workload& workload, int64_t index)
    : traits_(workload.model.traits()),
      module_path_(fmt::format("{}{}", traits_.layers, index)),
      workload_(workload),
      attention_(store, module_path_ + ".", workload, index),
      attention_output_(store, module_path_ + ".", traits_.attention.output,
                        workload.model.hidden_size, workload.model.hidden_size,
                        {.has_bias = traits_.has_biases}),
      attention_dropout_(traits_.attention.dropout, workload, workload.model.hidden_dropout_p,
                         index, DropoutSite::kAttentionOutput),
      attention_norm_(store, module_path_ + ".", traits_.attention.norm, workload),
      up_(store, module_path_ + ".", traits_.mlp.up, workload.model.hidden_size,
          workload.model.intermediate_size, {.has_bias = traits_.has_biases}),
      inner_dropout_(traits_.mlp.inner_dropout, workload, workload.model.inner_dropout_p(), index,
                     DropoutSite::kFeedForward),
      down_(store, module_path_ + ".", traits_.mlp.down, workload.model.intermediate_size,
            workload.model.hidden_size, {.has_bias = traits_.has_biases}),
      output_dropout_(traits_.mlp.dropout, workload, workload.model.hidden_dropout_p, index,
                      DropoutSite::kOutput),
      output_norm_(store, module_path_ + ".", traits_.mlp.norm, workload) {}

Tensor TransformerLayer::operator()(const Tensor& x, const ForwardContext& context) const {
    const RootModuleScope module_path(module_path_);
    if (workload_.recipe.fusion == Fusion::kSubstation) return substation(x, context);
    if (workload_.recipe.fusion == Fusion::kDeepSpeed) return deepspeed(x, context);
    const bool is_pre_norm = traits_.is_pre_norm();
    if (is_fused()) return is_pre_norm ? fused_pre_norm(x, context) : fused_post_norm(x, context);
    return is_pre_norm ? pre_norm(x, context) : post_norm(x, context);
}

/// Vaswani et al. 2017, Figure 1; Devlin et al. 2018.
Tensor TransformerLayer::post_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    Tensor a = attention_output_(attention_(x, context));                        // [B, S, H]
    a = add_residual(attention_dropout_(a, context), x, traits_.attention.sum);  // [B, S, H]
    name_tensor(a, "attention_residual");
    const Tensor y = attention_norm_(std::exchange(a, {}));  // [B, S, H]
    name_tensor(y, traits_.mlp.input);
    Tensor f = add_residual(feed_forward(y, context), y, traits_.mlp.sum);  // [B, S, H]
    name_tensor(f, "output_residual");
    const Tensor z = output_norm_(std::exchange(f, {}));  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

/// Radford et al. 2019: normalization at the input of each sub-block.
Tensor TransformerLayer::pre_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    Tensor normed = attention_norm_(x);  // [B, S, H]
    name_tensor(normed, traits_.attention.input);
    const Tensor a = attention_output_(attention_(std::exchange(normed, {}), context));
    const Tensor y =
        add_residual(attention_dropout_(a, context), x, traits_.attention.sum);  // [B, S, H]
    name_tensor(y, "attention_residual");
    normed = output_norm_(y);  // [B, S, H]
    name_tensor(normed, traits_.mlp.input);
    const Tensor z =
        add_residual(feed_forward(std::exchange(normed, {}), context), y, traits_.mlp.sum);
    name_tensor(z, "hidden_states");
    return z;
}

Tensor TransformerLayer::fused_post_norm(const Tensor& x, const ForwardContext& context) const {
    name_tensor(x, "hidden_states");
    const Tensor y = attention_norm_
                         .of_residual(attention_output_(attention_(x, context)), x,
                                      attention_dropout_.spec(context), /*with_sum=*/false)
                         .y;  // [B, S, H]
    name_tensor(y, traits_.mlp.input);
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
    name_tensor(normed, traits_.attention.input);
    auto [second, y] =
        output_norm_.of_residual(attention_output_(attention_(std::exchange(normed, {}), context)),
                                 x, attention_dropout_.spec(context), /*with_sum=*/true);
    name_tensor(y, "attention_residual");
    name_tensor(second, traits_.mlp.input);
    const Tensor z =
        add_residual(feed_forward(std::exchange(second, {}), context), y, traits_.mlp.sum);
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
                                           {.activation = name_of(traits_.activation),
                                            .num_heads = workload_.model.num_heads,
                                            .eps = workload_.model.layer_norm_eps,
                                            .attention_p = attention_.dropout().p(),
                                            .inner_p = inner_dropout_.p(),
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
    name_tensor(y, traits_.mlp.input);
    Tensor f = add(down_, deepspeed_mlp(y), y, output_dropout_);  // [B, S, H]
    name_tensor(f, "output_residual");
    const Tensor z = output_norm_(std::exchange(f, {}));  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

/// Without the bias of the second linear layer.
Tensor TransformerLayer::deepspeed_mlp(const Tensor& x) const {
    const std::string_view act = name_of(traits_.activation);
    Tensor f = up_.without_bias(x);  // [B, S, I]
    name_tensor(f, "gelu_input");
    if (workload_.recipe.gelu == Gelu::kRecompute) {
        const ModuleScope module_path(down_.module_path());
        return ops::bias_activation_linear(f, up_.bias(), down_.weight(), act);
    }
    {
        const ModuleScope module_path(traits_.mlp.activation);
        f = ops::bias_activation(f, up_.bias(), act);
        name_tensor(f, "gelu_output");
    }
    return down_.without_bias(f);
}

Tensor TransformerLayer::mlp(const Tensor& x, const ForwardContext& context) const {
    if (is_fused()) {
        Tensor f = up_.without_bias(x);  // [B, S, I]
        {
            const ModuleScope module_path(traits_.mlp.activation);
            f = ops::bias_gelu(f, up_.bias(), traits_.activation == Activation::kTanhGelu,
                               mask_kind(workload_.recipe.masks));
            name_tensor(f, "gelu_output");
        }
        return down_(f);  // [B, S, H]
    }
    Tensor f = up_(x);  // [B, S, I]
    name_tensor(f, "gelu_input");
    if (workload_.recipe.gelu == Gelu::kRecompute) {
        const ModuleScope module_path(down_.module_path());
        return ops::gelu_linear(f, down_.weight(), down_.bias(),
                                traits_.activation == Activation::kTanhGelu);
    }
    {
        const ModuleScope module_path(traits_.mlp.activation);
        f = activation(f, workload_);
        name_tensor(f, traits_.activation == Activation::kRelu ? "relu_output" : "gelu_output");
    }
    f = inner_dropout_(f, context);
    if (inner_dropout_.p() > 0) name_tensor(f, "dropped_relu");
    return down_(f);  // [B, S, H]
}

Tensor TransformerLayer::feed_forward(const Tensor& x, const ForwardContext& context) const {
    return output_dropout_(mlp(x, context), context);  // [B, S, H]
}

}  // namespace

std::unique_ptr<Layer> make_layer(ParameterStore& store, const Workload& workload, int64_t index) {
    if (workload.model.traits().positions == Positions::kRelative) {
        return make_t5_layer(store, workload, index);
    }
    return std::make_unique<TransformerLayer>(store, workload, index);
}

}  // namespace models
