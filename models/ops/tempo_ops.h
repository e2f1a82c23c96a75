#pragma once

#include "kernels/dropout.h"
#include "kernels/inplace_layernorm.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

/// Tempo's ops as differentiable functions of torch tensors, also reachable as `torch.ops.tempo.*`.
/// Each saves for backward exactly the tensors that its comment lists.
/// Source   Andoorveedu et al., "Tempo", NeurIPS 2022, arXiv 2210.10246.
/// Types    float, double, Half, BFloat16; inputs of any layout (made contiguous), on CPU, Meta
///          and, with tempo_ops_cuda loaded, CUDA.
/// Errors   c10::Error that names the argument, or the op whose gradient is differentiated again
///          (once_differentiable).
namespace models::ops {

using at::Tensor;

/// Which mask a dropout draws (the same in every recipe: kernels/dropout.h) and how it is stored.
struct DropoutSpec {
    double p = 0;
    kernels::MaskKind mask_kind = kernels::MaskKind::kByte;
    kernels::DropoutKey key;
};

/// The places in a model that draw a dropout mask: `site` of their keys.
enum class DropoutSite : uint32_t {
    kAttention,
    kAttentionOutput,
    kFeedForward,
    kOutput,
    kEmbeddings,
    kCrossAttention,
    kCrossAttentionOutput
};

/// x * keep / q. Saves the mask: n bytes, ceil(n/8) bytes, or nothing.
Tensor dropout(const Tensor& x, const DropoutSpec& spec);

/// GELU ("none" = erf, "tanh"). Saves the output and the branch mask [n bytes or ceil(n/8)].
Tensor inplace_gelu(const Tensor& x, bool tanh, kernels::MaskKind mask_kind);

/// inplace_gelu(x + bias) in one pass, the bias along the last dimension. Saves what inplace_gelu
/// saves; the sum is never stored.
Tensor bias_gelu(const Tensor& x, const Tensor& bias, bool tanh, kernels::MaskKind mask_kind);

/// LayerNorm over the last dimension. Saves the output (or x̂), fp32 rstd [R], gamma, beta.
/// gamma and beta, and x too if `dtype`, that of the output, is given, may be float beside 16 bits.
Tensor inplace_layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          kernels::LayerNormSave save,
                          std::optional<at::ScalarType> dtype = std::nullopt);

/// Dropout, residual and LayerNorm in one pass.
struct ResidualLayerNorm {
    Tensor y;    // LayerNorm(residual + dropout(x))
    Tensor sum;  // residual + dropout(x), if it was asked for
};
struct ResidualLayerNormOptions {
    double eps = 1e-5;
    kernels::LayerNormSave save = kernels::LayerNormSave::kOutput;
    DropoutSpec dropout;
    bool with_sum = false;
};

/// Saves the output (or x̂), rstd, gamma, beta and the dropout mask: what the three ops save one
/// after another. The residual, and with it the sum, may be float beside a 16-bit x.
ResidualLayerNorm residual_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma,
                                      const Tensor& beta, const ResidualLayerNormOptions& options);

/// The part of attention from the scores to the context.
struct AttentionCoreSpec {
    double scale = 1;
    bool causal = false;
    int64_t num_heads = 1;
    DropoutSpec dropout;
    bool recompute = true;  // the dropped probabilities in backward, or save them
};

/// dropout(softmax(scale * scores + mask)) · value. Saves the probabilities, the dropout mask and
/// value; without `recompute` the dropped probabilities too.
/// Shapes   scores [B*A, S, S], value and result [B*A, S, D], additive_mask [B, S] or none.
Tensor attention_core(const Tensor& scores, const Tensor& value,
                      const std::optional<Tensor>& additive_mask, const AttentionCoreSpec& spec);

/// linear(gelu(x), weight, bias) with gelu(x) computed again in backward (DeepSpeed's
/// gelu_checkpoint). Saves x and weight.
Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool tanh);

// ---- the fused passes of DeepSpeed's and Substation's layers (kernels/column_passes.h) ---------

/// act(x + bias) in one pass; activation "relu", "gelu" or "tanh_gelu". Saves x and bias.
Tensor bias_activation(const Tensor& x, const Tensor& bias, std::string_view activation);

/// act(x + bias) Wᵀ with act computed again in backward. Saves x, bias and weight.
Tensor bias_activation_linear(const Tensor& x, const Tensor& bias, const Tensor& weight,
                              std::string_view activation);

/// residual + dropout(x + bias) in one pass. Saves the mask. Under autocast all three take the type
/// of the residual, float or autocast's, which torch's own sum would have.
Tensor bias_dropout_residual(const Tensor& x, const Tensor& bias, const Tensor& residual,
                             const DropoutSpec& dropout);

/// Query, key and value [B*A, S, D] from x [B, S, 3H] and its bias, in one pass. Saves nothing.
struct Heads {
    Tensor query, key, value;
};
Heads bias_heads(const Tensor& x, const Tensor& bias, int64_t num_heads);

/// The parameters of a post-LN encoder layer.
struct EncoderWeights {
    Tensor projection, projection_bias;  // of query, key and value: [3H, H], [3H]
    Tensor attention_output, attention_output_bias;
    Tensor first_gamma, first_beta;
    Tensor up, up_bias, down, down_bias;
    Tensor second_gamma, second_beta;
};
struct EncoderSpec {
    std::string_view activation = "relu";
    int64_t num_heads = 1;
    double eps = 1e-5;
    double attention_p = 0;   // dropout of the probabilities,
    double inner_p = 0;       // after the activation,
    double hidden_p = 0;      // and before both residuals
    kernels::DropoutKey key;  // of DropoutSite::kAttention; those of the other sites follow from it
};

/// Substation's encoder layer, x [B, S, H]. Saves every tensor that forward writes.
Tensor substation_layer(const Tensor& x, const EncoderWeights& weights,
                        const std::optional<Tensor>& additive_mask, const EncoderSpec& spec);

}  // namespace models::ops
