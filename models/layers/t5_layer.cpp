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
#include <ATen/ops/neg.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

namespace models {
namespace {

constexpr int64_t kBuckets = 32;
constexpr int64_t kMaxDistance = 128;  // and beyond: the last bucket

}  // namespace

// ---- position --------------------------------------------------------------------------------

RelativePositionBias::RelativePositionBias(ParameterStore& store, const Workload& workload)
    : module_path_(fmt::format("{}0.{}.relative_attention_bias", workload.model.traits().layers,
                               workload.model.traits().attention.attention)),
      is_causal_(workload.model.traits().is_causal),
      weight_(store.add_normal(module_path_ + ".weight", {kBuckets, workload.model.num_heads})) {}

Tensor RelativePositionBias::operator()(int64_t seq_len) const {
    const RootModuleScope module_path(module_path_);
    const Tensor values =
        at::embedding(weight_, buckets(seq_len, is_causal_, weight_.device()));  // [S, S, A]
    return values.permute({2, 0, 1});                                            // [A, S, S]
}

/// Source: T5Attention._relative_position_bucket of Hugging Face. Half of the buckets are exact
/// distances; the others grow with the logarithm up to kMaxDistance. An encoder has one set for
/// each direction.
Tensor RelativePositionBias::buckets(int64_t seq_len, bool is_causal, at::Device device) {
    const Tensor positions = at::arange(seq_len, at::device(device).dtype(at::kLong));
    const Tensor relative = at::sub(positions.unsqueeze(0), positions.unsqueeze(1));  // key - query
    const int64_t count = is_causal ? kBuckets : kBuckets / 2;
    const int64_t exact = count / 2;
    const Tensor distance = is_causal ? at::neg(relative).clamp_min(0) : at::abs(relative);
    const double scale = static_cast<double>(count - exact) /
                         std::log(static_cast<double>(kMaxDistance) / static_cast<double>(exact));
    const Tensor far = at::log(distance.clamp_min(1).to(at::kFloat).div(static_cast<double>(exact)))
                           .mul(scale)
                           .to(at::kLong)
                           .add(exact)
                           .clamp_max(count - 1);
    Tensor bucket = at::where(at::lt(distance, exact), distance, far);
    if (!is_causal) bucket = at::add(bucket, at::gt(relative, 0).to(at::kLong).mul(count));
    return bucket;
}

// ---- attention -------------------------------------------------------------------------------

namespace {

const AttentionNames& names_of(const Workload& workload, bool is_cross) {
    const FamilyTraits& traits = workload.model.traits();
    return is_cross ? *traits.cross_attention : traits.attention;
}

/// A linear layer from H to H.
Linear square(ParameterStore& store, const std::string& prefix, std::string_view name,
              const Workload& workload) {
    const int64_t hidden = workload.model.hidden_size;
    return {store, prefix, name, hidden, hidden, {.has_bias = workload.model.traits().has_biases}};
}

/// Attention of the layer's tokens to themselves, or to the encoder's output, with its output
/// projection.
class T5Attention {
public:
    T5Attention(ParameterStore& store, const std::string& prefix, const Workload& workload,
                int64_t layer, bool is_cross)
        : module_path_(names_of(workload, is_cross).attention),
          num_heads_(workload.model.num_heads),
          is_cross_(is_cross),
          query_(square(store, prefix + module_path_ + ".", workload.model.traits().projections[0],
                        workload)),
          key_(square(store, prefix + module_path_ + ".", workload.model.traits().projections[1],
                      workload)),
          value_(square(store, prefix + module_path_ + ".", workload.model.traits().projections[2],
                        workload)),
          output_(square(store, prefix, names_of(workload, is_cross).output, workload)),
          dropout_("dropout", workload, workload.model.attention_dropout_p, layer,
                   is_cross ? DropoutSite::kCrossAttention : DropoutSite::kAttention) {}

    /// [B, S, H] -> same.
    Tensor operator()(const Tensor& x, const ForwardContext& context) const {
        std::optional<ModuleScope> module_path(std::in_place, module_path_);
        const Tensor& states = is_cross_ ? context.encoder_states.value() : x;
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
            if (!is_cross_) {
                // _unsafe_view: as in transformer_layer.cpp, an in-place addition on a view costs
                // two copies of its gradient.
                const std::vector<int64_t> flat = scores.sizes().vec();
                scores = at::_unsafe_view(scores, {x.size(0), num_heads_, flat[1], flat[2]});
                scores.add_(context.positions.value());
                scores = at::_unsafe_view(scores, flat);
            }
        }
        const Tensor dropped =
            dropout_(softmax(std::exchange(scores, {})), context);  // [B*A, S, S]
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
        module_path.reset();
        return output_(merged);
    }

private:
    /// [B, S, H] -> dense [B*A, S, D].
    Tensor heads(const Tensor& x) const {
        return x.view({x.size(0), x.size(1), num_heads_, -1})
            .transpose(1, 2)
            .contiguous()
            .view({-1, x.size(1), x.size(2) / num_heads_});
    }

    /// In fp32, and cast back.
    Tensor softmax(const Tensor& scores) const {
        const ModuleScope module_path("softmax");
        const Tensor probs = at::softmax(scores.to(wide_type(scores.scalar_type())), -1);
        name_tensor(probs, "attention_probs");
        return probs.to(scores.scalar_type());
    }

    std::string module_path_;
    int64_t num_heads_;
    bool is_cross_;
    Linear query_, key_, value_, output_;
    DropoutModule dropout_;
};

// ---- layer -----------------------------------------------------------------------------------

/// One block of T5's encoder or decoder.
class T5Layer final : public Layer {
public:
    T5Layer(ParameterStore& store, const Workload& workload, int64_t index)
        : names_(workload.model.traits().mlp),
          checkpoint_(workload.recipe.checkpoint),
          module_path_(fmt::format("{}{}", workload.model.traits().layers, index)),
          self_attention_(make_attention(store, workload, index, false)),
          cross_attention_(workload.model.traits().cross_attention
                               ? std::optional(make_attention(store, workload, index, true))
                               : std::nullopt),
          mlp_norm_(store, module_path_ + ".", names_.norm, workload),
          up_(store, module_path_ + ".", names_.up, workload.model.hidden_size,
              workload.model.intermediate_size, {.has_bias = workload.model.traits().has_biases}),
          inner_dropout_(names_.inner_dropout, workload, workload.model.inner_dropout_p(), index,
                         DropoutSite::kFeedForward),
          down_(store, module_path_ + ".", names_.down, workload.model.intermediate_size,
                workload.model.hidden_size, {.has_bias = workload.model.traits().has_biases}),
          output_dropout_(names_.dropout, workload, workload.model.hidden_dropout_p, index,
                          DropoutSite::kOutput) {}

    Tensor operator()(const Tensor& x, const ForwardContext& context) const override {
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

    std::vector<NormModule*> norms() override { return {}; }
    const std::string& module_path() const override { return module_path_; }
    Checkpoint checkpoint() const override { return checkpoint_; }

private:
    /// Attention between normalization and residual.
    struct AttentionBlock {
        const AttentionNames& names;
        NormModule norm;
        T5Attention attention;
        DropoutModule dropout;
    };

    AttentionBlock make_attention(ParameterStore& store, const Workload& workload, int64_t index,
                                  bool is_cross) const {
        const AttentionNames& names = names_of(workload, is_cross);
        const std::string prefix = module_path_ + ".";
        return {.names = names,
                .norm = NormModule(store, prefix, names.norm, workload),
                .attention = T5Attention(store, prefix, workload, index, is_cross),
                .dropout = DropoutModule(
                    names.dropout, workload, workload.model.hidden_dropout_p, index,
                    is_cross ? DropoutSite::kCrossAttentionOutput : DropoutSite::kAttentionOutput)};
    }

    Tensor attend(const AttentionBlock& block, const Tensor& x,
                  const ForwardContext& context) const {
        Tensor normed = block.norm(x);  // [B, S, H]
        name_tensor(normed, block.names.input);
        const Tensor a = block.attention(normed, context);
        normed.reset();
        return add_residual(block.dropout(a, context), x, block.names.sum);
    }

    Tensor feed_forward(const Tensor& x, const ForwardContext& context) const {
        Tensor f = mlp_norm_(x);  // [B, S, H]
        name_tensor(f, names_.input);
        f = up_(f);  // [B, S, I]
        {
            const ModuleScope of_activation(names_.activation);
            f = at::relu(f);
            name_tensor(f, "relu_output");
        }
        f = inner_dropout_(f, context);
        if (inner_dropout_.p() > 0) name_tensor(f, "dropped_relu");
        return add_residual(output_dropout_(down_(f), context), x, names_.sum);  // [B, S, H]
    }

    const MlpNames& names_;
    Checkpoint checkpoint_;
    std::string module_path_;  // "encoder.block.3"
    AttentionBlock self_attention_;
    std::optional<AttentionBlock> cross_attention_;  // of decoders
    NormModule mlp_norm_;
    Linear up_;
    DropoutModule inner_dropout_;
    Linear down_;
    DropoutModule output_dropout_;
};

}  // namespace

std::unique_ptr<Layer> make_t5_layer(ParameterStore& store, const Workload& workload,
                                     int64_t index) {
    return std::make_unique<T5Layer>(store, workload, index);
}

}  // namespace models
