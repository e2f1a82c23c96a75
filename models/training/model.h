#pragma once

#include "models/layers/modules.h"
#include "models/layers/t5_layer.h"
#include "models/training/batch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace models {

/// The embeddings before the layer stack: word, position and token type.
class Embeddings {
public:
    Embeddings(ParameterStore& store, const Workload& workload);
    Tensor operator()(const Batch& batch, const ForwardContext& context) const;  // -> [B, S, H]
    const Tensor& word_weight() const { return word_; }
    std::vector<NormModule*> norms();

private:
    std::string module_path_;
    Tensor word_;      // [V, H]
    Tensor position_;  // [P, H]
    Tensor type_;      // [T, H], undefined without token types
    std::optional<NormModule> norm_;
    DropoutModule dropout_;
};

/// A whole model: embeddings, layers and head. With Head::kLayers, the layer stack alone.
class Model {
public:
    explicit Model(const Workload& workload, at::Device device = at::kCPU,
                   Values values = Values::kDrawn);

    /// The loss of one batch, recorded for backward.
    Tensor forward(const Batch& batch, int64_t step) const;       // -> the head's input [B, S, H]
    Tensor loss(const Tensor& hidden, const Batch& batch) const;  // -> scalar

    const std::vector<Parameter>& parameters() const { return store_.parameters(); }

    /// Call after each optimizer step: updates decisions that depend on parameter values.
    void refresh();

private:
    Tensor run_layers(Tensor x, const ForwardContext& context) const;
    Tensor masked_lm_loss(const Tensor& hidden, const Batch& batch) const;
    Tensor span_loss(const Tensor& hidden, const Batch& batch) const;
    Tensor next_token_loss(const Tensor& hidden, const Batch& batch) const;
    /// The input of the loss: with fp32 master weights, apex O2 casts the model's output to fp32.
    Tensor output_of(const Tensor& logits) const;

    Workload workload_;
    ParameterStore store_;
    std::optional<Embeddings> embeddings_;
    std::optional<RelativePositionBias> position_bias_;  // T5's
    std::vector<std::unique_ptr<Layer>> layers_;
    std::optional<NormModule> final_norm_;  // GPT-2's
    std::optional<Linear> transform_;       // BERT's prediction head
    std::optional<NormModule> transform_norm_;
    Tensor decoder_bias_;         // [V]
    std::optional<Linear> span_;  // [2, H]
};

/// dtype of parameters and of the residual stream.
at::ScalarType weight_type(Precision precision);
/// dtype of matrix multiplications under autocast.
at::ScalarType autocast_type(Precision precision);

}  // namespace models
