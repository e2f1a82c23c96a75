#include "models/training/batch.h"

#include "models/training/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace models {
namespace {

constexpr double kMaskedShare = 0.15;  // Devlin et al. 2018, 3.1

/// The lowest finite number of the type: float's lowest is out of bfloat16's range.
double lowest_of(at::ScalarType type) {
    switch (type) {
        case at::kHalf:
            return std::numeric_limits<c10::Half>::lowest();
        case at::kBFloat16:
            return std::numeric_limits<c10::BFloat16>::lowest();
        default:
            return std::numeric_limits<float>::lowest();
    }
}

/// 0 for the first lengths[b] tokens of sequence b, the lowest finite number for the rest.
at::Tensor random_padding(const Workload& w, at::Generator& generator, at::ScalarType type) {
    const at::Tensor lengths =
        at::randint((w.seq_len + 1) / 2, w.seq_len + 1, {w.batch_size, 1}, generator, at::kLong);
    const at::Tensor padded = at::ge(at::arange(w.seq_len, at::kLong).unsqueeze(0), lengths);
    return at::zeros({w.batch_size, w.seq_len}, type).masked_fill_(padded, lowest_of(type));
}

/// The causal mask that eager attention adds to a decoder's scores. One tensor serves all layers;
/// fused attention needs none.
at::Tensor triangular_mask(const Workload& w, at::ScalarType type) {
    return at::triu(
        at::full({w.seq_len, w.seq_len}, -std::numeric_limits<double>::infinity(), type), 1);
}

bool has_textbook_attention(const Workload& w) {
    return std::ranges::count(recipes_in(w), Attention::kEager, &Recipe::attention) > 0;
}

/// The token itself with probability 0.15, "ignore" otherwise.
at::Tensor masked_lm_labels(const Workload& w, const at::Tensor& input_ids,
                            at::Generator& generator) {
    const at::Tensor keep =
        at::ge(at::rand({w.batch_size, w.seq_len}, generator, at::kFloat), kMaskedShare);
    return input_ids.masked_fill(keep, kIgnoredLabel);
}

/// The next token; "ignore" for the last one.
at::Tensor next_token_labels(const Workload& w, const at::Tensor& input_ids) {
    at::Tensor labels = at::full({w.batch_size, w.seq_len}, kIgnoredLabel, at::kLong);
    labels.narrow(1, 0, w.seq_len - 1).copy_(input_ids.narrow(1, 1, w.seq_len - 1));
    return labels;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> Batch::named() const {
    std::vector<std::pair<std::string, at::Tensor>> result;
    const std::pair<const char*, at::Tensor> members[] = {{"input", input},
                                                          {"encoder_states", encoder_states},
                                                          {"loss_weight", loss_weight},
                                                          {"input_ids", input_ids},
                                                          {"token_type_ids", token_type_ids},
                                                          {"position_ids", position_ids},
                                                          {"labels", labels},
                                                          {"additive_mask", additive_mask},
                                                          {"causal_mask", causal_mask}};
    for (const auto& [name, tensor] : members) {
        if (tensor.defined()) result.emplace_back(name, tensor);
    }
    return result;
}

Batch make_batch(const Workload& w, at::Device device, Values values) {
    // A generator of its own, so that weights and data of one seed are independent.
    at::Generator generator =
        at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(w.seed) ^ 0x5eed5eedULL);
    // Draw on the CPU and copy to the device.
    const auto place = [&](at::IntArrayRef shape, at::ScalarType type, const auto& draw) {
        if (values == Values::kNone) return at::empty(shape, at::device(device).dtype(type));
        return draw().to(device, type);
    };
    const at::ScalarType type = weight_type(w.precision);
    const std::vector<int64_t> by_token{w.batch_size, w.seq_len};
    Batch batch;
    if (w.head == Head::kLayers) {
        const std::vector<int64_t> shape{w.batch_size, w.seq_len, w.model.hidden_size};
        const auto draw = [&] { return at::randn(shape, generator, at::kFloat); };
        batch.input = place(shape, type, draw).set_requires_grad(w.input_requires_grad);
        if (w.model.traits().cross_attention) {
            batch.encoder_states =
                place(shape, type, draw).set_requires_grad(w.input_requires_grad);
        }
        batch.loss_weight = place(shape, type, draw);
    } else {
        at::Tensor ids;
        if (values == Values::kDrawn) {
            ids = at::randint(w.model.vocab_size, by_token, generator, at::kLong);
        }
        const int64_t first = w.model.first_position;
        batch.position_ids = place({w.seq_len}, at::kLong,
                                   [&] { return at::arange(first, first + w.seq_len, at::kLong); });
        if (w.model.type_vocab_size > 0) {
            batch.token_type_ids =
                place(by_token, at::kLong, [&] { return at::zeros(by_token, at::kLong); });
        }
        const bool spans = w.head == Head::kSquad;
        const std::vector<int64_t> by_label =
            spans ? std::vector<int64_t>{w.batch_size, 2} : by_token;
        batch.labels = place(by_label, at::kLong, [&] {
            if (spans) return at::randint(w.seq_len, by_label, generator, at::kLong);
            return w.head == Head::kMlm ? masked_lm_labels(w, ids, generator)
                                        : next_token_labels(w, ids);
        });
        batch.input_ids = place(by_token, at::kLong, [&] { return ids; });
    }
    if (w.padding == Padding::kRandom) {
        batch.additive_mask =
            place(by_token, type, [&] { return random_padding(w, generator, type); });
    }
    if (w.model.traits().is_causal && has_textbook_attention(w)) {
        const at::ScalarType scores = is_autocast(w.precision) ? autocast_type(w.precision) : type;
        batch.causal_mask =
            place({w.seq_len, w.seq_len}, scores, [&] { return triangular_mask(w, scores); });
    }
    return batch;
}

}  // namespace models
