#pragma once

#include "models/config/workload.h"
#include "models/layers/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace models {

inline constexpr int64_t kIgnoredLabel = -100;  // of a position where nothing is predicted

/// One training batch: uniform random tokens from the seed. Members that the head does not use are
/// undefined.
struct Batch {
    at::Tensor input;           // [B, S, H] for Head::kLayers: a leaf that requires grad
    at::Tensor encoder_states;  // [B, S, H] for a decoder that attends to an encoder: likewise
    at::Tensor loss_weight;     // [B, S, H] for Head::kLayers: loss = sum(output * loss_weight)
    at::Tensor input_ids;       // [B, S] int64
    at::Tensor token_type_ids;  // [B, S] int64
    at::Tensor position_ids;    // [S] int64
    at::Tensor labels;  // [B, S] int64, kIgnoredLabel where nothing is predicted; [B, 2] for squad
    at::Tensor additive_mask;  // [B, S]: 0 for tokens, the lowest number for padding
    at::Tensor
        causal_mask;  // [S, S]: 0 up to the diagonal, -inf above; for eager attention of a decoder

    /// The defined members with their names, to label storages.
    std::vector<std::pair<std::string, at::Tensor>> named() const;
};

Batch make_batch(const Workload& workload, at::Device device = at::kCPU,
                 Values values = Values::kDrawn);

}  // namespace models
