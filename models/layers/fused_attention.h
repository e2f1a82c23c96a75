#pragma once

#include "models/config/recipe.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

/// Attention that never writes its probabilities. Each backend of scaled_dot_product_attention is
/// called by its own op, because the composite op would choose one itself.
namespace models {

struct FusedAttentionOptions {
    std::optional<at::Tensor> additive_mask;  // [B, S]; not with flash
    bool causal = false;
    double dropout_p = 0;  // the backend draws its own mask; not with flash on the CPU
};

struct FusedAttention {
    at::Tensor out;        // [B, A, S, D], a view of [B, S, A, D]
    at::Tensor logsumexp;  // saved for backward
    // Saved too: from where the kernel's dropout drew. Flash attention and cuDNN on CUDA keep it,
    // also without dropout.
    std::vector<at::Tensor> generator_state;
};

/// query, key and value are [B, A, S, D], transposed views of [B, S, A, D]. Dense tensors would
/// give a dense `out`, which would have to be copied. `backend` is kFlash, kEfficient or kCudnn;
/// the last two exist on CUDA only.
FusedAttention fused_attention(Attention backend, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const FusedAttentionOptions& options);

}  // namespace models
