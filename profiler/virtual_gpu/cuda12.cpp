#include "profiler/virtual_gpu/api.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

/// What CUDA 12 has under other names, or with other structs, than CUDA 13. All else that torch
/// uses has one form in both (headers of CUDA 12.4, 12.8, 13.0 and 13.2).
namespace profiler::virtual_gpu {

/// cudaDeviceProp of CUDA 12.
struct Properties12 {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    std::size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    std::size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    std::size_t totalConstMem;
    int major, minor;
    std::size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory;
    int computeMode, textures_and_surfaces[40];
    std::size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported;
    std::size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
    int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
    int cooperativeLaunch, cooperativeMultiDeviceLaunch;
    std::size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    std::size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, others[10], clusterLaunch, unifiedFunctionPointers, reserved[63];
};
static_assert(sizeof(Properties12) == 1032);
static_assert(offsetof(Properties12, multiProcessorCount) == 388);
static_assert(offsetof(Properties12, l2CacheSize) == 616);
static_assert(offsetof(Properties12, sharedMemPerBlockOptin) == 696);

namespace {

Properties12 in_form_12(const cudaDeviceProp& from) {
    Properties12 to{};
    std::copy(std::begin(from.name), std::end(from.name), to.name);
    to.uuid = from.uuid;
    std::copy(std::begin(from.maxThreadsDim), std::end(from.maxThreadsDim), to.maxThreadsDim);
    std::copy(std::begin(from.maxGridSize), std::end(from.maxGridSize), to.maxGridSize);
    const auto copy = [&](auto... fields) { ((to.*(fields.first) = from.*(fields.second)), ...); };
#define VIRTUAL_GPU_FIELD(name) std::pair(&Properties12::name, &cudaDeviceProp::name)
    copy(VIRTUAL_GPU_FIELD(totalGlobalMem), VIRTUAL_GPU_FIELD(sharedMemPerBlock),
         VIRTUAL_GPU_FIELD(regsPerBlock), VIRTUAL_GPU_FIELD(warpSize), VIRTUAL_GPU_FIELD(memPitch),
         VIRTUAL_GPU_FIELD(maxThreadsPerBlock), VIRTUAL_GPU_FIELD(totalConstMem),
         VIRTUAL_GPU_FIELD(major), VIRTUAL_GPU_FIELD(minor), VIRTUAL_GPU_FIELD(textureAlignment),
         VIRTUAL_GPU_FIELD(multiProcessorCount), VIRTUAL_GPU_FIELD(canMapHostMemory),
         VIRTUAL_GPU_FIELD(concurrentKernels), VIRTUAL_GPU_FIELD(pciBusID),
         VIRTUAL_GPU_FIELD(asyncEngineCount), VIRTUAL_GPU_FIELD(unifiedAddressing),
         VIRTUAL_GPU_FIELD(l2CacheSize), VIRTUAL_GPU_FIELD(persistingL2CacheMaxSize),
         VIRTUAL_GPU_FIELD(maxThreadsPerMultiProcessor),
         VIRTUAL_GPU_FIELD(streamPrioritiesSupported), VIRTUAL_GPU_FIELD(globalL1CacheSupported),
         VIRTUAL_GPU_FIELD(localL1CacheSupported), VIRTUAL_GPU_FIELD(sharedMemPerMultiprocessor),
         VIRTUAL_GPU_FIELD(regsPerMultiprocessor), VIRTUAL_GPU_FIELD(managedMemory),
         VIRTUAL_GPU_FIELD(concurrentManagedAccess), VIRTUAL_GPU_FIELD(computePreemptionSupported),
         VIRTUAL_GPU_FIELD(canUseHostPointerForRegisteredMem), VIRTUAL_GPU_FIELD(cooperativeLaunch),
         VIRTUAL_GPU_FIELD(sharedMemPerBlockOptin), VIRTUAL_GPU_FIELD(maxBlocksPerMultiProcessor),
         VIRTUAL_GPU_FIELD(reservedSharedMemPerBlock), VIRTUAL_GPU_FIELD(hostRegisterSupported),
         VIRTUAL_GPU_FIELD(clusterLaunch));
#undef VIRTUAL_GPU_FIELD
    return to;
}

}  // namespace

VIRTUAL_GPU_API cudaError_t cudaGetDeviceProperties_v2(Properties12* properties, int device) {
    cudaDeviceProp found{};
    const cudaError_t error = cudaGetDeviceProperties(&found, device);
    if (error == cudaSuccess) *properties = in_form_12(found);
    return error;
}

VIRTUAL_GPU_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** function,
                                                    unsigned long long flags,
                                                    cudaDriverEntryPointQueryResult* result) {
    return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}

VIRTUAL_GPU_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                        cudaStreamCaptureStatus* status,
                                                        unsigned long long* id, cudaGraph_t* graph,
                                                        const cudaGraphNode_t** dependencies,
                                                        std::size_t* num_dependencies) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr,
                                    num_dependencies);
}

VIRTUAL_GPU_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* runnable, cudaGraph_t graph,
                                                 unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(runnable, graph, flags);
}

}  // namespace profiler::virtual_gpu
