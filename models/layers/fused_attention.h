#pragma once

#include "models/config/recipe.h"

#include <ATen/core/Tensor.h>

#include <optional>

/// Attention that never writes its probabilities: the backends of scaled_dot_product_attention,
/// each called by its own op. The composite would choose by the device, and on Meta another one.
namespace models {

struct FusedAttentionOptions {
    std::optional<at::Tensor> additive_mask;  // [B, S]; not with flash
    bool causal = false;
    double dropout_p = 0;  // the backend draws its own mask; not with flash on the CPU
};

struct FusedAttention {
    at::Tensor out;        // [B, A, S, D], a view of [B, S, A, D]
    at::Tensor logsumexp;  // saved for backward
};

/// query, key and value [B, A, S, D] as transposed views of [B, S, A, D]: dense ones would make
/// `out` dense in that layout, and a copy of it necessary.
/// `backend` is kFlash, kEfficient or kCudnn; the latter two exist on CUDA and Meta only.
FusedAttention fused_attention(Attention backend, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const FusedAttentionOptions& options);

}  // namespace models
