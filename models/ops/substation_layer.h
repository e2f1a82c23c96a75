#pragma once

#include "models/ops/arguments.h"
#include "models/ops/tempo_ops.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Substation's encoder layer: twelve fused kernels between its matrix multiplications, in the order
// of its operators (config_selection/ops.py in spcl/substation; Ivanov et al., MLSys 2021, arXiv
// 2007.00072). Its names stand at the end of the lines that run a kernel.
//
// It keeps every tensor that forward writes: 34 n + 4 T elements, masks in the type of the layer,
// and rstd.
//
// substation_forward.cpp and substation_backward.cpp run the kernels, substation_layer.cpp is the
// autograd function.

namespace models::ops::substation {

inline constexpr std::string_view kMasks = "element";

/// A linear layer, or a LayerNorm's gamma and beta.
struct Affine {
    Tensor weight, bias;
};

/// Everything that the layer computes with beside its input.
struct Weights {
    Affine projection, output, first_norm, up, down, second_norm;
};

struct LayerCall {
    std::string module_path;  // of the layer, for backward
    std::string activation;
    int64_t num_heads = 1;
    double eps = 1e-5;
    double attention_p = 0, inner_p = 0, hidden_p = 0;
    std::array<c10::SymInt, 5> key;  // of attention's dropout

    /// The key of a dropout of the layer.
    std::array<c10::SymInt, 5> key_of(DropoutSite site) const {
        static_assert(static_cast<uint32_t>(DropoutSite::kAttention) == 0,
                      "`key` is that of attention, and a site is added to it");
        auto result = key;
        result.back() = result.back() + static_cast<int64_t>(site);
        return result;
    }
};

/// What the layer keeps for backward beside its input and its weights, in the order of forward.
enum Kept : std::size_t {
    kInput,
    kProjected,
    kQuery,
    kKey,
    kValue,
    kScores,
    kProbs,
    kAttentionMask,
    kDropped,
    kContext,
    kAttentionBiased,
    kFirstNormalized,
    kFirstCentered,
    kFirstRstd,
    kFirstMask,
    kAttentionResult,
    kUp,
    kUpBiased,
    kInnerMask,
    kInnerResult,
    kDown,
    kDownBiased,
    kSecondNormalized,
    kSecondCentered,
    kSecondRstd,
    kSecondMask,
    kProjectionWeight,
    kOutputWeight,
    kFirstGamma,
    kUpWeight,
    kDownWeight,
    kSecondGamma,
    kNumKept
};

/// [B, S, H] -> [B, S, H]. Fills `kept` but for the weights. `additive_mask` [B, S] or none.
Tensor forward(const Weights& weights, const LayerCall& call, const Tensor& x,
               const MaybeTensor& additive_mask, std::vector<Tensor>& kept);

struct Gradients {
    Tensor x;
    Weights weights;
};
/// From the gradient of the layer's output.
Gradients backward(const std::vector<Tensor>& kept, const LayerCall& call, const Tensor& dy);

/// 1 / √D, from query [B*A, S, D].
double score_scale(const Tensor& query);

}  // namespace models::ops::substation
