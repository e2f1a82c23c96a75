#include "models/training/model.h"

#include "models/observer/observer.h"
#include "models/ops/checkpoint.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace models {
namespace {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels) {
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, kIgnoredLabel);
}

}  // namespace

at::ScalarType weight_type(Precision precision) {
    switch (precision) {
        case Precision::kFp32:
        case Precision::kTf32:
        case Precision::kAmpFp16:
        case Precision::kAmpBf16:
            return at::kFloat;
        case Precision::kFp16:
        case Precision::kPureFp16:
            return at::kHalf;
        case Precision::kBf16:
        case Precision::kPureBf16:
            return at::kBFloat16;
        case Precision::kFp64:
            return at::kDouble;
    }
    TORCH_CHECK(false, "not a precision");
}

at::ScalarType autocast_type(Precision precision) {
    return precision == Precision::kAmpFp16 ? at::kHalf : at::kBFloat16;
}

// ---- embeddings ------------------------------------------------------------------------------

Embeddings::Embeddings(ParameterStore& store, const Workload& workload)
    : module_path_(workload.model.traits().embeddings.module),
      dropout_(workload.model.traits().embeddings.dropout, workload,
               workload.model.hidden_dropout_p, -1, DropoutSite::kEmbeddings) {
    const ModelConfig& m = workload.model;
    const EmbeddingNames& names = m.traits().embeddings;
    const auto add = [&](std::string_view name, int64_t num_rows) {
        return store.add_normal(std::string(name) + ".weight", {num_rows, m.hidden_size});
    };
    word_ = add(names.word, m.vocab_size);
    position_ = add(names.position, m.max_position_embeddings);
    if (!names.token_type.empty()) type_ = add(names.token_type, m.type_vocab_size);
    if (!names.norm.empty()) {
        norm_.emplace(store, module_path_ + ".", names.norm, workload);
    }
}

Tensor Embeddings::operator()(const Batch& batch, const ForwardContext& context) const {
    const ModuleScope module_path(module_path_);
    Tensor x = at::embedding(word_, batch.input_ids);      // [B, S, H]
    x.add_(at::embedding(position_, batch.position_ids));  // + [S, H]
    if (type_.defined()) x.add_(at::embedding(type_, batch.token_type_ids));
    if (norm_) x = (*norm_)(x);
    return dropout_(x, context);
}

std::vector<NormModule*> Embeddings::norms() {
    if (!norm_) return {};
    return {&*norm_};
}

// ---- model -----------------------------------------------------------------------------------

Model::Model(const Workload& workload, at::Device device, Values values)
    : workload_(workload),
      store_(workload.seed,
             at::TensorOptions().device(device).dtype(weight_type(workload.precision)), values) {
    const ModelConfig& m = workload.model;
    if (workload.head != Head::kLayers) embeddings_.emplace(store_, workload);
    const FamilyTraits& traits = m.traits();
    if (traits.positions == Positions::kRelative) position_bias_.emplace(store_, workload);
    for (int64_t i = 0; i < m.num_layers; ++i) {
        layers_.push_back(make_layer(store_, workload_of_layer(workload, i), i));
    }
    if (embeddings_ && !traits.final_norm.empty()) {
        final_norm_.emplace(store_, "", traits.final_norm, workload);
    }
    if (workload.head == Head::kMlm) {
        transform_.emplace(store_, "cls.predictions.", "transform.dense", m.hidden_size,
                           m.hidden_size);
        transform_norm_.emplace(store_, "cls.predictions.", "transform.LayerNorm", workload);
        decoder_bias_ = store_.add_constant("cls.predictions.bias", {m.vocab_size}, 0);
    }
    if (workload.head == Head::kSquad) span_.emplace(store_, "", "qa_outputs", m.hidden_size, 2);
}

Tensor Model::forward(const Batch& batch, int64_t step) const {
    ForwardContext context{
        .step = step, .additive_mask = std::nullopt, .causal_mask = std::nullopt};
    if (batch.additive_mask.defined()) context.additive_mask = batch.additive_mask;
    if (batch.causal_mask.defined()) context.causal_mask = batch.causal_mask;
    if (batch.encoder_states.defined()) context.encoder_states = batch.encoder_states;
    if (position_bias_) {
        context.positions = (*position_bias_)(workload_.seq_len);
        if (context.causal_mask) {
            context.positions = at::add(*context.positions, *context.causal_mask);
        }
    }
    Tensor x = embeddings_ ? (*embeddings_)(batch, context) : batch.input;
    x = run_layers(std::move(x), context);
    return final_norm_ ? (*final_norm_)(x) : x;
}

Tensor Model::run_layers(Tensor x, const ForwardContext& context) const {
    for (std::size_t first = 0; first < layers_.size();) {
        const Checkpoint checkpoint = layers_[first]->checkpoint();
        const auto stride =
            static_cast<std::size_t>(layers_per_checkpoint(checkpoint, workload_.model.num_layers));
        if (stride == 0) {
            x = (*layers_[first++])(x, context);
            continue;
        }
        std::size_t last = first + 1;
        while (last < layers_.size() && last < first + stride &&
               layers_[last]->checkpoint() == checkpoint) {
            ++last;
        }
        name_tensor(x, "hidden_states");
        const auto run = [this, context, first, last](at::TensorList inputs) {
            ForwardContext own = context;
            if (own.positions) own.positions = inputs[1];
            Tensor hidden = inputs[0];
            for (std::size_t i = first; i < last; ++i) hidden = (*layers_[i])(hidden, own);
            return hidden;
        };
        // Every checkpoint gives the shared position bias a gradient, so it is an input: backward
        // through its own graph happens once, after the last of them.
        std::vector<Tensor> inputs{x};
        if (context.positions) inputs.push_back(*context.positions);
        x = ops::checkpoint(layers_[first]->module_path(), run, inputs);
        first = last;
    }
    return x;
}

Tensor Model::loss(const Tensor& hidden, const Batch& batch) const {
    switch (workload_.head) {
        case Head::kLayers:
            return at::sum(at::mul(hidden, batch.loss_weight));
        case Head::kMlm:
            return masked_lm_loss(hidden, batch);
        case Head::kSquad:
            return span_loss(hidden, batch);
        case Head::kLm:
            return next_token_loss(hidden, batch);
    }
    TORCH_CHECK(false, "not a head");
}

/// Hugging Face BertForMaskedLM: dense, GELU, LayerNorm, then the word embeddings as decoder.
Tensor Model::masked_lm_loss(const Tensor& hidden, const Batch& batch) const {
    const ModuleScope module_path("cls.predictions");
    Tensor x = (*transform_)(hidden);                  // [B, S, H]
    x = (*transform_norm_)(activation(x, workload_));  // [B, S, H]
    const ModuleScope decoder("decoder");
    const Tensor logits = at::linear(x, embeddings_->word_weight(), decoder_bias_);  // [B, S, V]
    return cross_entropy(output_of(logits).view({-1, workload_.model.vocab_size}),
                         batch.labels.view({-1}));
}

/// Hugging Face BertForQuestionAnswering: mean of the cross entropies of start and end.
Tensor Model::span_loss(const Tensor& hidden, const Batch& batch) const {
    const Tensor outputs = (*span_)(hidden);  // [B, S, 2]
    const ModuleScope module_path("loss");
    const Tensor logits = output_of(outputs);
    const Tensor start = cross_entropy(logits.select(2, 0).contiguous(), batch.labels.select(1, 0));
    const Tensor end = cross_entropy(logits.select(2, 1).contiguous(), batch.labels.select(1, 1));
    return at::mul(at::add(start, end), 0.5);
}

/// Hugging Face GPT2LMHeadModel: tied decoder, loss in fp32.
Tensor Model::next_token_loss(const Tensor& hidden, const Batch& batch) const {
    const ModuleScope module_path("lm_head");
    const Tensor logits = at::linear(hidden, embeddings_->word_weight());  // [B, S, V]
    return cross_entropy(logits.view({-1, workload_.model.vocab_size}).to(at::kFloat),
                         batch.labels.view({-1}));
}

Tensor Model::output_of(const Tensor& logits) const {
    return has_master_weights(workload_.precision) ? logits.to(at::kFloat) : logits;
}

void Model::refresh() {
    std::vector<NormModule*> norms;
    const auto append = [&](const std::vector<NormModule*>& more) {
        norms.insert(norms.end(), more.begin(), more.end());
    };
    if (embeddings_) append(embeddings_->norms());
    for (const auto& layer : layers_) append(layer->norms());
    if (final_norm_) norms.push_back(&*final_norm_);
    if (transform_norm_) norms.push_back(&*transform_norm_);
    refresh_norms(norms);
}

}  // namespace models
