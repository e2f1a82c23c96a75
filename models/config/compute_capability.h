#pragma once

#include "models/config/result.h"

#include <compare>
#include <cstdint>
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

/// Memory beside a step's tensors: torch's default workspace for one cuBLAS handle and stream. 4096
/// KiB x 2 + 16 KiB x 8, and 32 MiB on compute capability 9.0 alone
/// (ATen/cuda/CublasHandlePool.cpp, torch 2.11).
int64_t cublas_workspace_bytes(ComputeCapability capability);
/// True if some GPU's cuBLAS workspace has this size.
bool is_cublas_workspace_bytes(int64_t bytes);

/// What one multiprocessor of a generation runs at once.
/// Source   CUDA C++ Programming Guide 13.0, technical specifications per compute capability.
struct SmLimits {
    int threads = 0;
    int blocks = 0;
    int64_t shared_bytes = 0;            // for all blocks
    int64_t shared_bytes_per_block = 0;  // with opt-in
};

/// Of the newest known generation that is not newer than `capability`; of the oldest for others.
SmLimits sm_limits(ComputeCapability capability);

}  // namespace models
