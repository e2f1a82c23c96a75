#pragma once

#include "models/layers/layer.h"

#include <array>
#include <string>
#include <vector>

namespace models {

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

/// One encoder layer (BERT: normalization after the residual) or decoder block (GPT-2: before it).
/// `workload.recipe` is the layer's own.
class TransformerLayer final : public Layer {
public:
    TransformerLayer(ParameterStore& store, const Workload& workload, int64_t index);
    Tensor operator()(const Tensor& x, const ForwardContext& context) const override;
    std::vector<LayerNormModule*> norms() override { return {&attention_norm_, &output_norm_}; }
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

    std::string module_path_;  // "encoder.layer.3" or "h.3"
    Workload workload_;
    SelfAttention attention_;
    Linear attention_output_;
    DropoutModule attention_dropout_;
    LayerNormModule attention_norm_;
    Linear up_;
    DropoutModule inner_dropout_;  // Substation only
    Linear down_;
    DropoutModule output_dropout_;
    LayerNormModule output_norm_;
};

}  // namespace models
