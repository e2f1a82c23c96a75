#include "models/config/cuda_support.h"

#include <charconv>

namespace models {
namespace {

constexpr int64_t kDefaultWorkspaceBytes = (4096 * 2 + 16 * 8) * int64_t{1024};
constexpr int64_t kHopperWorkspaceBytes = int64_t{32} << 20;

/// The dtype in which attention runs: autocast gives it 16 bits.
int64_t attention_bytes(Precision precision) {
    return is_autocast(precision) ? 2 : weight_bytes(precision);
}

Result<void> validate_precision(Precision precision, ComputeCapability capability) {
    const bool is_tf32 = precision == Precision::kTf32;
    const bool is_bf16 = precision == Precision::kBf16 || precision == Precision::kAmpBf16 ||
                         precision == Precision::kPureBf16;
    if (capability >= kAmpere || !(is_tf32 || is_bf16)) return {};
    return fail(
        "The precision {} needs compute capability 8.0, and this GPU has {}, which multiplies no "
        "{} matrices: choose fp32 or fp16.",
        name_of(precision), to_text(capability), is_tf32 ? "tf32" : "bf16");
}

/// sdp_utils.cpp in torch: what each backend of scaled_dot_product_attention asks for.
Result<void> validate_fused_attention(const Workload& w, Attention backend,
                                      ComputeCapability capability) {
    const auto name = kAttentionNames[static_cast<std::size_t>(backend)];
    const int64_t element_bytes = attention_bytes(w.precision);
    const bool efficient = backend == Attention::kEfficient;
    if (efficient ? element_bytes == 8 : element_bytes != 2) {
        return fail("The attention '{}' has no {} kernel: choose {} or attention=materialized.",
                    name, name_of(w.precision),
                    efficient ? "--precision fp32" : "--precision bf16");
    }
    if (!efficient && capability < kAmpere) {
        return fail(
            "The attention '{}' needs compute capability 8.0, and this GPU has {}.{}: choose "
            "attention=efficient.",
            name, capability.major, capability.minor);
    }
    // Rows of a head are loaded 16 bytes at a time.
    const int64_t multiple = 16 / element_bytes;
    const int64_t largest = efficient ? INT64_MAX : backend == Attention::kFlash ? 256 : 128;
    if (w.model.head_dim() % multiple != 0 || w.model.head_dim() > largest) {
        return fail(
            "The attention '{}' cannot run heads of {}: choose --hidden and --heads so that a head "
            "is a multiple of {}{}, or attention=materialized.",
            name, w.model.head_dim(), multiple,
            efficient ? "" : fmt::format(" and at most {}", largest));
    }
    if (backend == Attention::kFlash && w.padding != Padding::kNone) {
        return fail(
            "The attention 'flash' has no padding mask: choose attention=efficient or --padding "
            "none.");
    }
    if (w.padding != Padding::kNone && w.model.family == Family::kGpt2) {
        return fail(
            "The attention '{}' takes a padding mask or causality, not both: choose "
            "attention=materialized or --padding none.",
            name);
    }
    return {};
}

Result<void> validate_recipe_for_cuda(const Workload& workload, const Recipe& recipe,
                                      ComputeCapability capability) {
    if (recipe.fusion != Fusion::kNone) {
        return fail("The fusion '{}' is not available on CUDA: choose fusion=none.",
                    kFusionNames[static_cast<std::size_t>(recipe.fusion)]);
    }
    switch (recipe.attention) {
        case Attention::kMaterialized:
        case Attention::kRecomputeDropout:
            return {};
        case Attention::kFlash:
        case Attention::kEfficient:
        case Attention::kCudnn:
            return validate_fused_attention(workload, recipe.attention, capability);
    }
    return {};
}

}  // namespace

std::string to_text(ComputeCapability capability) {
    return fmt::format("{}.{}", capability.major, capability.minor);
}

Result<ComputeCapability> parse_compute_capability(std::string_view text) {
    ComputeCapability capability;
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, capability.major);
    if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
        const auto minor = std::from_chars(major.ptr + 1, end, capability.minor);
        const bool is_whole = minor.ec == std::errc() && minor.ptr == end;
        if (is_whole && capability.major > 0 && capability.minor >= 0) return capability;
    }
    return fail("'{}' is not a compute capability: write it as 8.6.", text);
}

Result<void> validate_for_cuda(const Workload& workload, ComputeCapability capability) {
    if (auto ok = validate(workload); !ok) return ok;
    if (auto ok = validate_precision(workload.precision, capability); !ok) return ok;
    for (const Recipe& recipe : recipes_in(workload)) {
        if (auto ok = validate_recipe_for_cuda(workload, recipe, capability); !ok) return ok;
    }
    return {};
}

int64_t cublas_workspace_bytes(ComputeCapability capability) {
    return capability == ComputeCapability{9, 0} ? kHopperWorkspaceBytes : kDefaultWorkspaceBytes;
}

bool is_cublas_workspace_bytes(int64_t bytes) {
    return bytes == kDefaultWorkspaceBytes || bytes == kHopperWorkspaceBytes;
}

}  // namespace models
