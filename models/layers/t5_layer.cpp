#include "models/layers/t5_layer.h"

#include "models/observer/observer.h"

#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <utility>

namespace models {
namespace {

constexpr int64_t kBuckets = 32;
constexpr int64_t kMaxDistance = 128;  // and beyond: the last bucket

bool is_decoder(const Workload& workload) { return workload.model.family == Family::kT5Decoder; }

std::string stack_of(const Workload& workload) {
    return is_decoder(workload) ? "decoder.block." : "encoder.block.";
}

/// fp32 for 16-bit values, else the type itself.
at::ScalarType wide_type(at::ScalarType type) {
    return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

}  // namespace

// ---- normalization ---------------------------------------------------------------------------

RmsNormModule::RmsNormModule(ParameterStore& store, const std::string& prefix,
                             std::string module_path, const Workload& workload)
    : module_path_(std::move(module_path)),
      eps_(workload.model.layer_norm_eps),
      gamma_(
          store.add_constant(prefix + module_path_ + ".weight", {workload.model.hidden_size}, 1)) {}

Tensor RmsNormModule::operator()(const Tensor& x) const {
    const ModuleScope module_path(module_path_);
    const Tensor wide = x.to(wide_type(x.scalar_type()));
    if (wide.scalar_type() != x.scalar_type()) name_tensor(wide, "norm_input");
    const Tensor variance = at::mean(at::pow(wide, 2), at::IntArrayRef{-1}, /*keepdim=*/true);
    const Tensor rstd = at::rsqrt(at::add(variance, eps_));  // [B, S, 1]
    name_tensor(rstd, "rstd");
    const Tensor normalized = at::mul(x, rstd).to(gamma_.scalar_type());  // [B, S, H]
    name_tensor(normalized, "normalized");
    return at::mul(gamma_, normalized);
}

// ---- position --------------------------------------------------------------------------------

RelativePositionBias::RelativePositionBias(ParameterStore& store, const Workload& workload)
    : module_path_(stack_of(workload) + "0.layer.0.SelfAttention.relative_attention_bias"),
      is_decoder_(is_decoder(workload)),
      weight_(store.add_normal(module_path_ + ".weight", {kBuckets, workload.model.num_heads})) {}

Tensor RelativePositionBias::operator()(int64_t seq_len) const {
    const RootModuleScope module_path(module_path_);
    const Tensor values =
        at::embedding(weight_, buckets(seq_len, is_decoder_, weight_.device()));  // [S, S, A]
    return values.permute({2, 0, 1});                                             // [A, S, S]
}

/// Source: T5Attention._relative_position_bucket of Hugging Face. Half of the buckets are exact
/// distances; the others grow with the logarithm up to kMaxDistance. An encoder has one set for
/// each direction.
Tensor RelativePositionBias::buckets(int64_t seq_len, bool is_decoder, at::Device device) {
    const Tensor positions = at::arange(seq_len, at::device(device).dtype(at::kLong));
    const Tensor relative = at::sub(positions.unsqueeze(0), positions.unsqueeze(1));  // key - query
    const int64_t count = is_decoder ? kBuckets : kBuckets / 2;
    const int64_t exact = count / 2;
    const Tensor distance = is_decoder ? at::neg(relative).clamp_min(0) : at::abs(relative);
    const double scale = static_cast<double>(count - exact) /
                         std::log(static_cast<double>(kMaxDistance) / static_cast<double>(exact));
    const Tensor far = at::log(distance.clamp_min(1).to(at::kFloat).div(static_cast<double>(exact)))
                           .mul(scale)
                           .to(at::kLong)
                           .add(exact)
                           .clamp_max(count - 1);
    Tensor bucket = at::where(at::lt(distance, exact), distance, far);
    if (!is_decoder) bucket = at::add(bucket, at::gt(relative, 0).to(at::kLong).mul(count));
    return bucket;
}

// ---- attention -------------------------------------------------------------------------------

T5Attention::T5Attention(ParameterStore& store, const std::string& prefix, std::string module_path,
                         const Workload& workload, int64_t layer, DropoutSite site)
    : module_path_(std::move(module_path)),
      num_heads_(workload.model.num_heads),
      query_(store, prefix + module_path_ + ".", "q", workload.model.hidden_size,
             workload.model.hidden_size, {.has_bias = false}),
      key_(store, prefix + module_path_ + ".", "k", workload.model.hidden_size,
           workload.model.hidden_size, {.has_bias = false}),
      value_(store, prefix + module_path_ + ".", "v", workload.model.hidden_size,
             workload.model.hidden_size, {.has_bias = false}),
      output_(store, prefix + module_path_ + ".", "o", workload.model.hidden_size,
              workload.model.hidden_size, {.has_bias = false}),
      dropout_("dropout", workload, workload.model.attention_dropout_p, layer, site) {}

Tensor T5Attention::heads(const Tensor& x) const {
    return x.view({x.size(0), x.size(1), num_heads_, -1})
        .transpose(1, 2)
        .contiguous()
        .view({-1, x.size(1), x.size(2) / num_heads_});
}

/// In fp32, and cast back.
Tensor T5Attention::softmax(const Tensor& scores) const {
    const ModuleScope module_path("softmax");
    const Tensor probs = at::softmax(scores.to(wide_type(scores.scalar_type())), -1);
    name_tensor(probs, "attention_probs");
    return probs.to(scores.scalar_type());
}

Tensor T5Attention::operator()(const Tensor& x, const Tensor& states,
                               const std::optional<Tensor>& bias,
                               const ForwardContext& context) const {
    const ModuleScope module_path(module_path_);
    const Tensor query = heads(query_(x));       // [B*A, S, D]
    const Tensor key = heads(key_(states));      // [B*A, S, D]
    const Tensor value = heads(value_(states));  // [B*A, S, D]
    name_tensor(query, "query");
    name_tensor(key, "key");
    name_tensor(value, "value");
    Tensor scores;  // [B*A, S, S]
    {
        const ModuleScope of_scores("scores");
        scores = at::bmm(query, key.transpose(1, 2));
        if (bias) {
            // _unsafe_view: as in transformer_layer.cpp, an in-place addition on a view costs two
            // copies of its gradient.
            const std::vector<int64_t> flat = scores.sizes().vec();
            scores = at::_unsafe_view(scores, {x.size(0), num_heads_, flat[1], flat[2]});
            scores.add_(*bias);
            scores = at::_unsafe_view(scores, flat);
        }
    }
    const Tensor dropped = dropout_(softmax(std::exchange(scores, {})), context);  // [B*A, S, S]
    if (dropout_.p() > 0) name_tensor(dropped, "dropped_probs");
    Tensor merged;
    {
        const ModuleScope of_context("context");
        merged = at::bmm(dropped, value)
                     .view({x.size(0), num_heads_, x.size(1), -1})
                     .transpose(1, 2)
                     .reshape(x.sizes());  // [B, S, H]
        name_tensor(merged, "context");
    }
    return output_(merged);
}

// ---- layer -----------------------------------------------------------------------------------

T5Layer::AttentionBlock T5Layer::make_attention(ParameterStore& store, const Workload& workload,
                                                int64_t index, bool is_cross) const {
    const std::string path = is_cross ? "layer.1" : "layer.0";
    const std::string prefix = module_path_ + "." + path + ".";
    return {.module_path = path,
            .norm = RmsNormModule(store, prefix, "layer_norm", workload),
            .attention = T5Attention(
                store, prefix, is_cross ? "EncDecAttention" : "SelfAttention", workload, index,
                is_cross ? DropoutSite::kCrossAttention : DropoutSite::kAttention),
            .dropout = DropoutModule(
                "dropout", workload, workload.model.hidden_dropout_p, index,
                is_cross ? DropoutSite::kCrossAttentionOutput : DropoutSite::kAttentionOutput)};
}

T5Layer::T5Layer(ParameterStore& store, const Workload& workload, int64_t index)
    : checkpoint_(workload.recipe.checkpoint),
      module_path_(stack_of(workload) + std::to_string(index)),
      mlp_path_(is_decoder(workload) ? "layer.2" : "layer.1"),
      self_attention_(make_attention(store, workload, index, false)),
      cross_attention_(is_decoder(workload)
                           ? std::optional(make_attention(store, workload, index, true))
                           : std::nullopt),
      mlp_norm_(store, module_path_ + "." + mlp_path_ + ".", "layer_norm", workload),
      up_(store, module_path_ + "." + mlp_path_ + ".", "DenseReluDense.wi",
          workload.model.hidden_size, workload.model.intermediate_size, {.has_bias = false}),
      inner_dropout_("DenseReluDense.dropout", workload, workload.model.inner_dropout_p(), index,
                     DropoutSite::kFeedForward),
      down_(store, module_path_ + "." + mlp_path_ + ".", "DenseReluDense.wo",
            workload.model.intermediate_size, workload.model.hidden_size, {.has_bias = false}),
      output_dropout_("dropout", workload, workload.model.hidden_dropout_p, index,
                      DropoutSite::kOutput) {}

Tensor T5Layer::operator()(const Tensor& x, const ForwardContext& context) const {
    const RootModuleScope module_path(module_path_);
    name_tensor(x, "hidden_states");
    Tensor y = attend(self_attention_, x, context);  // [B, S, H]
    name_tensor(y, "attention_residual");
    if (cross_attention_) {
        y = attend(*cross_attention_, y, context);  // [B, S, H]
        name_tensor(y, "cross_attention_residual");
    }
    Tensor z = feed_forward(y, context);  // [B, S, H]
    name_tensor(z, "hidden_states");
    return z;
}

Tensor T5Layer::attend(const AttentionBlock& block, const Tensor& x,
                       const ForwardContext& context) const {
    const ModuleScope module_path(block.module_path);
    const bool is_cross = cross_attention_ && &block == &*cross_attention_;
    Tensor normed = block.norm(x);  // [B, S, H]
    name_tensor(normed, is_cross ? "cross_attention_input" : "attention_input");
    const Tensor a =
        is_cross ? block.attention(normed, context.encoder_states.value(), std::nullopt, context)
                 : block.attention(normed, normed, context.position_bias, context);
    normed.reset();
    return add_residual(block.dropout(a, context), x, "");
}

Tensor T5Layer::feed_forward(const Tensor& x, const ForwardContext& context) const {
    const ModuleScope module_path(mlp_path_);
    Tensor f = mlp_norm_(x);  // [B, S, H]
    name_tensor(f, "mlp_input");
    f = up_(f);  // [B, S, I]
    {
        const ModuleScope of_activation("DenseReluDense.act");
        f = at::relu(f);
        name_tensor(f, "relu_output");
    }
    f = inner_dropout_(f, context);
    if (inner_dropout_.p() > 0) name_tensor(f, "dropped_relu");
    return add_residual(output_dropout_(down_(f), context), x, "");  // [B, S, H]
}

}  // namespace models
