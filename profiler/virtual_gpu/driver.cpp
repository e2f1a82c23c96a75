#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/kernels.h"
#include "profiler/virtual_gpu/work.h"

#include <dlfcn.h>
#include <algorithm>
#include <string>

/// The driver's entry points: functions by name, launches, occupancy.
namespace profiler::virtual_gpu {
namespace {

/// A function of this library, and of no other.
void* find_function(const std::string& name) {
    static void* const self = [] {
        Dl_info info{};
        dladdr(reinterpret_cast<void*>(&find_function), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    Dl_info found{};
    Dl_info own{};
    void* const function = dlsym(self, name.c_str());
    const bool is_own = function != nullptr && dladdr(function, &found) != 0 &&
                        dladdr(reinterpret_cast<void*>(&find_function), &own) != 0 &&
                        found.dli_fbase == own.dli_fbase;
    return is_own ? function : nullptr;
}

/// The newest version of a function under its plain name: cuMemCreate, cuDeviceGetUuid_v2.
void* find_entry_point(const char* name) {
    for (const char* const suffix : {"_v3", "_v2", ""}) {
        if (void* const function = find_function(std::string(name) + suffix)) return function;
    }
    return nullptr;
}

CUresult launch_function(CUfunction function, const Launch& work) {
    return to_driver_error(launch(kernel_of_function(function), work));
}

}  // namespace

VIRTUAL_GPU_API CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                             CUdriverProcAddressQueryResult* result) {
    *function = find_entry_point(name);
    const bool found = *function != nullptr;
    if (result != nullptr) {
        *result = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

VIRTUAL_GPU_API cudaError_t
cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                 cudaDriverEntryPointQueryResult* result) {
    *function = find_entry_point(name);
    const bool found = *function != nullptr;
    if (result != nullptr) {
        *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    return found ? cudaSuccess : report(cudaErrorSymbolNotFound);
}

/// Libraries of CUDA ask for functions that only the driver knows, and some do without.
VIRTUAL_GPU_API CUresult cuGetExportTable(const void** table, const CUuuid*) {
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

/// Torch asks for the driver's messages since 2.14. There are none.
VIRTUAL_GPU_API CUresult cuLogsRegisterCallback(CUlogsCallback, void*,
                                                CUlogsCallbackHandle* handle) {
    static int any = 0;
    if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(&any);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle) { return CUDA_SUCCESS; }

VIRTUAL_GPU_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                        unsigned block_z, unsigned shared, CUstream stream,
                                        void** arguments, void**) {
    const ApiCall call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    return launch_function(function, {dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                                      shared, stream, arguments});
}
VIRTUAL_GPU_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x,
                                                   unsigned grid_y, unsigned grid_z,
                                                   unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned shared,
                                                   CUstream stream, void** arguments) {
    const ApiCall call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel);
    return launch_function(function, {dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                                      shared, stream, arguments});
}
VIRTUAL_GPU_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                          void** arguments, void**) {
    const ApiCall call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
    return launch_function(function, {dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
                                      dim3(config->blockDimX, config->blockDimY, config->blockDimZ),
                                      config->sharedMemBytes, config->hStream, arguments});
}
VIRTUAL_GPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                     CUfunction function,
                                                                     int block_size,
                                                                     std::size_t shared) {
    *blocks = blocks_per_sm(current_card(), kernel_of_function(function).resources,
                            {block_size, static_cast<int64_t>(shared)});
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, CUfunction function, int block_size, std::size_t shared, unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}
/// As if a cluster could take its blocks from all multiprocessors. On a card they lie within one
/// part of it, whose size differs from card to card.
VIRTUAL_GPU_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                      const CUlaunchConfig* config) {
    const auto threads =
        static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
    const int blocks = blocks_per_sm(current_card(), kernel_of_function(function).resources,
                                     {threads, static_cast<int64_t>(config->sharedMemBytes)});
    unsigned of_cluster = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const auto& size = config->attrs[i].value.clusterDim;
        of_cluster = std::max(1U, size.x * size.y * size.z);
    }
    *clusters = blocks * current_card().sm_count / static_cast<int>(of_cluster);
    return CUDA_SUCCESS;
}

/// A tensor map is 128 bytes that only kernels read.
VIRTUAL_GPU_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t,
                                                void*, const cuuint64_t*, const cuuint64_t*,
                                                const cuuint32_t*, const cuuint32_t*,
                                                CUtensorMapInterleave, CUtensorMapSwizzle,
                                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    *map = {};
    return CUDA_SUCCESS;
}

}  // namespace profiler::virtual_gpu
