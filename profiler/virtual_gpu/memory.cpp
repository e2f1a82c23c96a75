#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/host_memory.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/value_copies.h"

#include <array>
#include <cstring>
#include <string>

/// Allocations on devices, and copies.
namespace profiler::virtual_gpu {
namespace {

CUpti_ActivityMemcpyKind copy_kind(bool to_device, bool from_device) {
    if (to_device) {
        return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    }
    return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

void move_bytes(void* target, const void* source, std::size_t size) {
    const Memories& memories = Memories::instance();
    const bool to_device = memories.device_of(target) >= 0;
    const bool from_device = memories.device_of(source) >= 0;
    if (to_device && from_device) {
        copy_on_devices(target, source, size);
    } else if (to_device) {
        copy_to_device(target, source, size);
    } else if (from_device) {
        copy_to_host(target, source, size);
    } else {
        std::memmove(target, source, size);
    }
}

cudaError_t copy(void* target, const void* source, std::size_t size, cudaStream_t stream) {
    if (size == 0) return cudaSuccess;
    const Memories& memories = Memories::instance();
    submit(stream, {.kind = WorkKind::kCopy,
                    .size_bytes = static_cast<int64_t>(size),
                    .copy_kind = copy_kind(memories.device_of(target) >= 0,
                                           memories.device_of(source) >= 0)});
    if (!stream_of(stream).capture) move_bytes(target, source, size);
    return cudaSuccess;
}

cudaError_t set(void* target, int value, std::size_t size, cudaStream_t stream) {
    if (size == 0) return cudaSuccess;
    submit(stream, {.kind = WorkKind::kSet, .size_bytes = static_cast<int64_t>(size)});
    if (stream_of(stream).capture) return cudaSuccess;
    if (Memories::instance().device_of(target) < 0) {
        std::memset(target, value, size);
    } else {
        fill_on_device(target, std::array{static_cast<std::byte>(value)}, size);
    }
    return cudaSuccess;
}

cudaError_t allocate(void** address, std::size_t size) {
    *address = nullptr;
    if (size == 0) return cudaSuccess;
    set_current_device(current_device());
    const auto place = Memories::instance()[current_device()].allocate(size);
    if (!place) return cudaErrorMemoryAllocation;
    *address = reinterpret_cast<void*>(*place);
    cupti_memory(/*is_release=*/false, *address, size);
    return cudaSuccess;
}

cudaError_t free_memory(void* address) {
    if (address == nullptr) return cudaSuccess;
    if (host_memory_of(address) == HostMemory::kManaged) return free_host_memory(address);
    const int device = Memories::instance().device_of(address);
    if (device < 0) return cudaErrorInvalidValue;
    const auto range = Memories::instance()[device].range_of(number_of(address));
    if (!Memories::instance()[device].free(number_of(address))) return cudaErrorInvalidValue;
    cupti_memory(/*is_release=*/true, address, range ? range->second : 0);
    return cudaSuccess;
}

}  // namespace

// ---- device memory ------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaMalloc(void** address, std::size_t size) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
    return report(allocate(address, size));
}

VIRTUAL_GPU_API cudaError_t cudaFree(void* address) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020);
    return report(free_memory(address));
}

VIRTUAL_GPU_API cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    const DeviceMemory& memory = Memories::instance()[current_device()];
    *free_bytes = static_cast<std::size_t>(memory.free_bytes());
    *total_bytes = static_cast<std::size_t>(memory.total_bytes());
    return cudaSuccess;
}

/// A caller of CUDA 12 has room for these four fields alone: CUDA 13 has a reserve behind them.
VIRTUAL_GPU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                     const void* address) {
    attributes->devicePointer = attributes->hostPointer = nullptr;
    auto* const pointer = const_cast<void*>(address);
    const int device = Memories::instance().device_of(address);
    attributes->device = device >= 0 ? device : current_device();
    if (device >= 0) {
        attributes->type = cudaMemoryTypeDevice;
        attributes->devicePointer = pointer;
    } else if (const HostMemory kind = host_memory_of(address); kind != HostMemory::kPageable) {
        const bool is_managed = kind == HostMemory::kManaged;
        attributes->type = is_managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
        attributes->devicePointer = attributes->hostPointer = pointer;
    } else {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = cudaInvalidDeviceId;
        attributes->hostPointer = pointer;
    }
    return cudaSuccess;
}

// ---- copies -------------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaMemcpy(void* target, const void* source, std::size_t size,
                                       cudaMemcpyKind) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020);
    return copy(target, source, size, nullptr);
}

VIRTUAL_GPU_API cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t size,
                                            cudaMemcpyKind, cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
    return copy(target, source, size, stream);
}

VIRTUAL_GPU_API cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int,
                                                std::size_t size, cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000);
    return copy(target, source, size, stream);
}

VIRTUAL_GPU_API cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch,
                                              const void* source, std::size_t source_pitch,
                                              std::size_t width, std::size_t height, cudaMemcpyKind,
                                              cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020);
    for (std::size_t row = 0; row < height; ++row) {
        const cudaError_t error =
            copy(static_cast<char*>(target) + row * target_pitch,
                 static_cast<const char*>(source) + row * source_pitch, width, stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaMemset(void* target, int value, std::size_t size) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020);
    return set(target, value, size, nullptr);
}

VIRTUAL_GPU_API cudaError_t cudaMemsetAsync(void* target, int value, std::size_t size,
                                            cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
    return set(target, value, size, stream);
}

// ---- the driver: expandable segments ------------------------------------------------------------

VIRTUAL_GPU_API CUresult cuMemGetAllocationGranularity(std::size_t* granularity,
                                                       const CUmemAllocationProp*,
                                                       CUmemAllocationGranularity_flags) {
    *granularity = kGranuleBytes;
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size,
                                             std::size_t alignment, CUdeviceptr,
                                             unsigned long long) {
    const auto place = Memories::instance()[current_device()].reserve(size, alignment);
    if (!place) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = *place;
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
    const int device = Memories::instance().device_of(reinterpret_cast<void*>(address));
    if (device < 0) return CUDA_ERROR_INVALID_VALUE;
    Memories::instance()[device].release(address, size);
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                                     const CUmemAllocationProp* properties, unsigned long long) {
    const ApiCall call(CUPTI_DRIVER_TRACE_CBID_cuMemCreate);
    const int device = properties->location.id;
    if (device < 0 || device >= static_cast<int>(machine().cards.size()))
        return CUDA_ERROR_INVALID_DEVICE;
    auto made = Memories::instance()[device].create(device, size);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made.release());
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    auto* const memory = reinterpret_cast<MemoryHandle*>(handle);
    Memories::instance()[memory->device].end_use(memory);
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemMap(CUdeviceptr address, std::size_t, std::size_t,
                                  CUmemGenericAllocationHandle handle, unsigned long long) {
    auto* const memory = reinterpret_cast<MemoryHandle*>(handle);
    Memories::instance()[memory->device].map(address, *memory);
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*,
                                        std::size_t) {
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
    const ApiCall call(CUPTI_DRIVER_TRACE_CBID_cuMemUnmap);
    const int device = Memories::instance().device_of(reinterpret_cast<void*>(address));
    if (device < 0) return CUDA_ERROR_INVALID_VALUE;
    Memories::instance()[device].unmap(address, size);
    return CUDA_SUCCESS;
}

VIRTUAL_GPU_API CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute,
                                               CUdeviceptr address) {
    auto* const pointer = reinterpret_cast<void*>(address);
    const int device = Memories::instance().device_of(pointer);
    const HostMemory kind = device >= 0 ? HostMemory::kPageable : host_memory_of(pointer);
    if (device < 0 && kind == HostMemory::kPageable) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(value) = device >= 0 ? device : current_device();
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(value) =
                device >= 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:  // Triton asks for it at each launch
            *static_cast<CUdeviceptr*>(value) = address;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (device >= 0) return CUDA_ERROR_INVALID_VALUE;
            *static_cast<void**>(value) = pointer;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *static_cast<bool*>(value) = kind == HostMemory::kManaged;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: {
            if (device < 0) return CUDA_ERROR_INVALID_VALUE;
            const auto range = Memories::instance()[device].range_of(address);
            if (!range) return CUDA_ERROR_INVALID_VALUE;
            const bool is_size = attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
            *static_cast<uint64_t*>(value) = is_size ? range->second : range->first;
            return CUDA_SUCCESS;
        }
        default:
            return refuse_by_driver_error(
                ("cuPointerGetAttribute of attribute " + std::to_string(attribute)).c_str());
    }
}

}  // namespace profiler::virtual_gpu
