#pragma once

#include "models/config/result.h"
#include "profiler/capture/cuda_source.h"

#include <cuda_runtime_api.h>

#include <string_view>
#include <vector>

namespace profiler {

/// The device that captures use: the first that CUDA shows (CUDA_VISIBLE_DEVICES chooses). A
/// program of the user's chooses its own.
inline constexpr int kCudaDevice = 0;

/// Errors: one sentence on what is missing, and how to go on.
models::Result<CudaDevice> find_cuda_device(int index = kCudaDevice);

/// Whether the process has a virtual GPU in place of CUDA (docs/dev/virtual_gpu.md): no kernel
/// runs, so that times and values mean nothing.
bool on_virtual_gpu();
/// What NCCL holds there beside the allocator; 0 on a real GPU, where CUPTI tells it.
int64_t virtual_nccl_bytes(int device);

/// Whether torch's allocator can be recorded: only the native one can, with its cache. `backend` is
/// torch's name of the allocator in use; `uncached`: PYTORCH_NO_CUDA_MEMORY_CACHING is set.
/// Errors: one sentence with the variables to unset.
models::Result<void> check_allocator(std::string_view backend, bool uncached);

/// Driver and device for doctor. Creates no context.
std::vector<CudaCheck> check_cuda_device();
/// The CUPTI that libtorch brings, and whether it can record.
CudaCheck check_cupti();

/// What cudaGetDeviceCount answered.
struct DeviceCount {
    cudaError_t error = cudaSuccess;
    int count = 0;
    bool driver_loaded = true;  // the kernel module of the driver
    int runtime_version = 0;    // of torch's CUDA: 13000
};

/// What that means for the user.
CudaCheck describe_device_count(const DeviceCount& answer);

}  // namespace profiler
