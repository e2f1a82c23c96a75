#pragma once

#include "models/config/result.h"

#include <compare>
#include <string>
#include <string_view>

namespace models {

/// The generation of a GPU: which kernels it runs and which workspaces its libraries take. 8.0 is
/// an A100, 9.0 an H100.
struct ComputeCapability {
    int major = 8;
    int minor = 0;

    friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

/// The first generation with bf16 and tf32 matrix products and with flash attention.
inline constexpr ComputeCapability kAmpere{8, 0};

std::string to_text(ComputeCapability capability);  // "8.0", "12.0"
/// Errors: the text does not have that form.
Result<ComputeCapability> parse_compute_capability(std::string_view text);

}  // namespace models
