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

/// The first generation with bf16 and tf32 products and with flash attention.
inline constexpr ComputeCapability kAmpere{8, 0};

std::string to_text(ComputeCapability capability);  // "8.0", "12.0"
/// Errors: not of that form.
Result<ComputeCapability> parse_compute_capability(std::string_view text);

/// As `validate`, and that torch's CUDA kernels take the workload's types and sizes: bf16 and tf32
/// want a GPU of their generation; the fused attention ops want that, 16 bits, and heads of their
/// size. One sentence on the first problem found.
Result<void> validate_for_cuda(const Workload& workload, ComputeCapability capability);

/// torch's default workspace of a cuBLAS handle and stream: 4096 KiB x 2 + 16 KiB x 8, and 32 MiB
/// on compute capability 9.0 alone (ATen/cuda/CublasHandlePool.cpp; as in 2.11).
int64_t cublas_workspace_bytes(ComputeCapability capability);
/// Whether that is the size of some GPU's.
bool is_cublas_workspace_bytes(int64_t bytes);
inline constexpr int64_t kCublasLtWorkspaceBytes = 1 << 20;  // of a stream, beside cuBLAS's

/// Tokens up to which embedding_dense_backward adds rows one by one; it sorts more of them, which
/// takes memory of its own (ATen/native/cuda/Embedding.cu).
inline constexpr int64_t kMostUnsortedTokens = 3072;
/// Rows from which on the partial sums of our LayerNorm's backward do not grow any more:
/// kernels::layer_norm_cuda_num_partials, to which a test holds it.
inline constexpr int64_t kLayerNormPartialRows = 216;

}  // namespace models
