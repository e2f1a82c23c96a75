#pragma once

#include "models/config/result.h"
#include "profiler/capture/cuda_source.h"

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <vector>

namespace profiler {

/// The device that captures use: the first that CUDA shows (CUDA_VISIBLE_DEVICES chooses).
inline constexpr int kCudaDevice = 0;

/// Errors: one sentence on what is missing, and how to go on.
models::Result<CudaDevice> find_cuda_device();

/// Whether torch's allocator can be recorded: the native one, with its cache. `backend` is what
/// torch calls the one it has chosen; `uncached`: PYTORCH_NO_CUDA_MEMORY_CACHING is set.
/// Errors: one sentence with the variables to unset.
models::Result<void> check_allocator(std::string_view backend, bool uncached);

/// Driver and device as doctor shows them; no context is made.
std::vector<CudaCheck> check_cuda_device();
/// The CUPTI that libtorch brought, and whether it would serve us.
CudaCheck check_cupti();

/// What CUDA's answer to "how many devices?" means for the user. `driver_loaded`: whether the
/// kernel's part of a driver is there.
CudaCheck describe_device_count(cudaError_t error, int count, bool driver_loaded);

}  // namespace profiler
