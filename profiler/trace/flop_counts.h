#pragma once

#include <cstdint>

/// Arithmetic of one element of each function of a Transformer layer.
///
/// What an op computes counts, not how its kernel does it: GELU is 5 operations, whether by erf, by
/// tanh or by a polynomial, and its derivative 11, from its input or from its output. So recipes
/// can be compared. An op with several functions counts all of them, and an op that runs again in
/// backward counts again. Source: Ivanov et al., arXiv 2007.00072, with the counts of Substation
/// (exp, tanh, sqrt and erf are one operation each; comparisons none).
namespace profiler::flop {

inline constexpr int64_t kBias = 1;  // added; its gradient is one addition, too
inline constexpr int64_t kScale = 1;
inline constexpr int64_t kDropout = 1;  // one product, forward and backward
inline constexpr int64_t kResidual = 1;

inline constexpr int64_t kRelu = 0;
inline constexpr int64_t kGelu = 5;  // 0.5 x (1 + erf(x / √2))
inline constexpr int64_t kGeluBackward = 11;
inline constexpr int64_t kSigmoid = 3;       // s = 1 / (1 + exp -x)
inline constexpr int64_t kSilu = 4;          // x s
inline constexpr int64_t kSiluBackward = 8;  // dy s (1 + x (1 - s))

inline constexpr int64_t kSoftmax = 4;  // subtract, exp, sum, divide
inline constexpr int64_t kSoftmaxBackward = 4;
inline constexpr int64_t kLogSoftmax = 5;

inline constexpr int64_t kLayerNorm = 7;            // mean 1, variance 3, normalize 1, affine 2
inline constexpr int64_t kLayerNormParameters = 4;  // backward: of gamma and beta
inline constexpr int64_t kLayerNormInput = 9;       // backward: of the input
inline constexpr int64_t kLayerNormBackward = kLayerNormParameters + kLayerNormInput;
inline constexpr int64_t kRmsNorm = 4;  // LayerNorm without the mean and beta
inline constexpr int64_t kRmsNormBackward = 10;
inline constexpr int64_t kNormalizedOfRmsOutput = 1;  // x̂ = y / gamma
inline constexpr int64_t kNormalizedOfOutput = 2;     // x̂ = (y - beta) / gamma
inline constexpr int64_t kNormalizedOfCentered = 1;   // x̂ = (x - mean) rstd

}  // namespace profiler::flop
