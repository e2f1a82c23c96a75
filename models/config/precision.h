#pragma once

#include "models/config/result.h"

#include <array>
#include <cstdint>
#include <string_view>

/// Numeric formats of a training step: weights, gradients, optimizer state.
namespace models {

enum class Precision : uint8_t {
    kFp32,      // everything fp32
    kTf32,      // fp32 with tf32 matrix multiplication
    kFp16,      // 16-bit weights and gradients; fp32 loss, master weights, moments (apex O2)
    kBf16,      // the same in bf16
    kAmpFp16,   // fp32 weights, autocast
    kAmpBf16,   // the same with bf16
    kPureFp16,  // 16-bit throughout, optimizer state too
    kPureBf16,
    kFp64,  // everything fp64: the reference that recipes are compared in
};
inline constexpr std::array<std::string_view, 9> kPrecisionNames{
    "fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16", "pure-fp16", "pure-bf16", "fp64"};

constexpr std::string_view name_of(Precision p) { return kPrecisionNames[static_cast<size_t>(p)]; }
Result<Precision> parse_precision(std::string_view name);

constexpr bool is_autocast(Precision p) {
    return p == Precision::kAmpFp16 || p == Precision::kAmpBf16;
}
/// Weights in 16 bits with an fp32 master copy in the optimizer.
constexpr bool has_master_weights(Precision p) {
    return p == Precision::kFp16 || p == Precision::kBf16;
}
/// Bytes of one element of weights and of the residual stream.
constexpr int64_t weight_bytes(Precision p) {
    if (p == Precision::kFp64) return 8;
    return p == Precision::kFp32 || p == Precision::kTf32 || is_autocast(p) ? 4 : 2;
}

}  // namespace models
