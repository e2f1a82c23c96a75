#pragma once

#include "models/config/result.h"
#include "profiler/capture/cuda_source.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace profiler {

/// The device that captures use: the first that CUDA shows (CUDA_VISIBLE_DEVICES chooses).
inline constexpr int kCudaDevice = 0;

/// Errors: one sentence on what is missing, and how to go on.
models::Result<CudaDevice> find_cuda_device();

/// Driver and device as doctor shows them; no context is made.
std::vector<CudaCheck> check_cuda_device();
/// The CUPTI that libtorch brought, and whether it would serve us.
CudaCheck check_cupti();

/// What CUDA's answer to "how many devices?" means for the user. `driver_loaded`: whether the
/// kernel's part of a driver is there.
CudaCheck describe_device_count(cudaError_t error, int count, bool driver_loaded);

}  // namespace profiler
