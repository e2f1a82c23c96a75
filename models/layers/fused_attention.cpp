#include "models/layers/fused_attention.h"

#include "models/observer/observer.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/constant_pad_nd.h>

namespace models {
namespace {

using at::Tensor;

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

}  // namespace

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

}  // namespace models
