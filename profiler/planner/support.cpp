#include "profiler/planner/support.h"

#include <fmt/format.h>

namespace profiler {
namespace {

using models::Attention;
using models::Precision;

constexpr ComputeCapability kAmpere{8, 0};

bool computes_in_16_bit(Precision precision) {
    const auto type = matmul_type_of(precision);
    return type == MatmulType::kFp16 || type == MatmulType::kBf16;
}

bool is_older_than(const Gpu& gpu, ComputeCapability capability) {
    return gpu.compute_capability && *gpu.compute_capability < capability;
}

std::optional<std::string> why_no_precision(Precision precision, const Gpu& gpu) {
    if (precision == Precision::kFp64) {
        return "fp64 is the reference that recipes are compared in and no plan is made for it: "
               "choose another --precision.";
    }
    const MatmulType type = *matmul_type_of(precision);
    const bool needs_ampere = type == MatmulType::kTf32 || type == MatmulType::kBf16;
    if (needs_ampere && is_older_than(gpu, kAmpere)) {
        return fmt::format(
            "{} multiplies no {} matrices (compute capability 8.0 and later do): choose fp16 or "
            "fp32.",
            gpu.id, name_of(type));
    }
    return std::nullopt;
}

/// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: what each backend refuses.
std::optional<std::string> why_no_attention(const models::Workload& workload, const Gpu& gpu) {
    const Attention attention = workload.recipe.attention;
    const auto name = models::kAttentionNames[static_cast<std::size_t>(attention)];
    const bool is_16_bit_only = attention == Attention::kFlash || attention == Attention::kCudnn;
    if (is_16_bit_only && is_older_than(gpu, kAmpere)) {
        return fmt::format(
            "{} attention needs compute capability 8.0, and {} has {}: choose attention=efficient "
            "or materialized.",
            name, gpu.id, to_text(*gpu.compute_capability));
    }
    if (is_16_bit_only && !computes_in_16_bit(workload.precision)) {
        return fmt::format(
            "{} attention computes in fp16 and bf16 only, not in {}: choose another --precision.",
            name, models::name_of(workload.precision));
    }
    const int64_t head_dim = workload.model.head_dim();
    const int64_t max_head_dim = attention == Attention::kCudnn ? 128 : 256;
    if (is_16_bit_only && head_dim > max_head_dim) {
        return fmt::format("{} attention takes heads of at most {} elements, and {} has {}.", name,
                           max_head_dim, workload.model.name, head_dim);
    }
    if (attention == Attention::kFlash && workload.padding != models::Padding::kNone) {
        return "flash attention takes no padding mask: choose attention=efficient, or --padding "
               "none.";
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu) {
    if (auto reason = why_no_precision(workload.precision, gpu)) return reason;
    return why_no_attention(workload, gpu);
}

}  // namespace profiler
