#include "profiler/planner/support.h"

#include <fmt/format.h>

namespace profiler {
namespace {

using models::Precision;

constexpr ComputeCapability kAmpere{8, 0};

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

}  // namespace

std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu) {
    if (auto reason = why_no_precision(workload.precision, gpu)) return reason;
    models::Workload smallest = workload;  // how large a batch may be is asked later
    smallest.batch_size = 1;
    const auto ok = models::validate_for_cuda(smallest, gpu.compute_capability.value_or(kAmpere));
    return ok ? std::nullopt : std::optional(ok.error().message);
}

}  // namespace profiler
