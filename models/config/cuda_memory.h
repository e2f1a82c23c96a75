#pragma once

#include "models/config/compute_capability.h"

#include <cstdint>

/// Memory that CUDA libraries take beside a step's tensors.
namespace models {

/// torch's default workspace for one cuBLAS handle and stream: 4096 KiB x 2 + 16 KiB x 8, and 32
/// MiB on compute capability 9.0 alone (ATen/cuda/CublasHandlePool.cpp, torch 2.11).
int64_t cublas_workspace_bytes(ComputeCapability capability);
/// True if some GPU's cuBLAS workspace has this size.
bool is_cublas_workspace_bytes(int64_t bytes);

}  // namespace models
