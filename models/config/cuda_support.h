#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"

#include <compare>
#include <string>
#include <string_view>

/// Which workloads a CUDA device can run, as far as its kind decides it.
namespace models {

/// The generation of a GPU: which kernels it runs and which workspaces its libraries take. 8.0 is
/// an A100, 9.0 an H100.
struct ComputeCapability {
    int major = 8;
    int minor = 0;

    friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

std::string to_text(ComputeCapability capability);  // "8.0", "12.0"
/// Errors: not of that form.
Result<ComputeCapability> parse_compute_capability(std::string_view text);

/// As `validate`, and that torch's CUDA kernels take the workload's types and sizes: the fused
/// attention ops want 16 bits, a card of their generation, and heads of their size. One sentence on
/// the first problem found.
Result<void> validate_for_cuda(const Workload& workload, ComputeCapability capability);

}  // namespace models
