#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/kernels.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/torch_install.h"
#include "profiler/virtual_gpu/work.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Devices, their properties, and errors.
namespace profiler::virtual_gpu {
namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::array<std::atomic<bool>, kMaxDevices> contexts;
thread_local std::vector<int> pushed_devices;  // that cuCtxPushCurrent put aside
/// By CUlimit, with the driver's defaults: 1 KiB of stack, 1 MiB for printf, 8 MiB of heap.
/// Programs read what they set; no memory is taken for it.
std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

int num_devices() { return static_cast<int>(machine().cards.size()); }
bool is_device(int device) { return device >= 0 && device < num_devices(); }
const Card& card_of(int device) { return machine().cards[static_cast<std::size_t>(device)]; }

struct ErrorText {
    cudaError_t error;
    const char* name;
    const char* text;
};
/// The errors that this library gives, in CUDA's words.
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorFileNotFound, "cudaErrorFileNotFound", "file not found"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorUnsupportedLimit, "cudaErrorUnsupportedLimit",
     "limit is not supported on this architecture"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the "
     "present state"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"}};

const ErrorText* find_text(cudaError_t error) {
    const auto* const found = std::ranges::find(kErrors, error, &ErrorText::error);
    return found == std::end(kErrors) ? nullptr : found;
}

void make_uuid(int device, char* bytes) {
    constexpr char kStart[16] = "virtual GPU 000";
    std::memcpy(bytes, kStart, sizeof kStart);
    bytes[15] = static_cast<char>(device);
}

constexpr int kTextureAlignment = 512;

int persisting_l2_bytes(const Card& card) {
    return card.major >= 8 ? static_cast<int>(card.l2_bytes / 4 * 3) : 0;
}

cudaDeviceProp make_properties(int device) {
    const Card& card = card_of(device);
    cudaDeviceProp properties{};
    std::snprintf(properties.name, sizeof properties.name, "%s", card.name.c_str());
    make_uuid(device, properties.uuid.bytes);
    properties.totalGlobalMem = static_cast<std::size_t>(card.total_bytes);
    properties.sharedMemPerBlock = kSharedBytesPerBlock;
    properties.regsPerBlock = kRegistersPerSm;
    properties.warpSize = kWarpThreads;
    properties.memPitch = INT32_MAX;
    properties.maxThreadsPerBlock = kThreadsPerBlock;
    properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = kThreadsPerBlock;
    properties.maxThreadsDim[2] = kMaxBlockZ;
    properties.maxGridSize[0] = kMaxGridX;
    properties.maxGridSize[1] = properties.maxGridSize[2] = kMaxGridYZ;
    properties.totalConstMem = 64 * 1024;
    properties.major = card.major;
    properties.minor = card.minor;
    properties.textureAlignment = kTextureAlignment;
    properties.multiProcessorCount = card.sm_count;
    properties.canMapHostMemory = 1;
    properties.concurrentKernels = 1;
    properties.pciBusID = device + 1;
    properties.asyncEngineCount = 3;
    properties.unifiedAddressing = 1;
    properties.l2CacheSize = static_cast<int>(card.l2_bytes);
    properties.persistingL2CacheMaxSize = persisting_l2_bytes(card);
    properties.maxThreadsPerMultiProcessor = card.threads_per_sm;
    properties.streamPrioritiesSupported = 1;
    properties.globalL1CacheSupported = properties.localL1CacheSupported = 1;
    properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_bytes_per_sm);
    properties.regsPerMultiprocessor = kRegistersPerSm;
    properties.managedMemory = properties.concurrentManagedAccess = 1;
    properties.computePreemptionSupported = 1;
    properties.canUseHostPointerForRegisteredMem = 1;
    properties.cooperativeLaunch = 1;
    properties.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_bytes_per_block);
    properties.maxBlocksPerMultiProcessor = card.blocks_per_sm;
    properties.reservedSharedMemPerBlock = static_cast<std::size_t>(reserved_shared_bytes(card));
    properties.hostRegisterSupported = 1;
    properties.clusterLaunch = card.major >= 9 ? 1 : 0;
    return properties;
}

/// Made once: torch and its libraries ask again and again.
const cudaDeviceProp& properties_of(int device) {
    static const std::vector<cudaDeviceProp> all = [] {
        std::vector<cudaDeviceProp> made;
        for (int i = 0; i < num_devices(); ++i) made.push_back(make_properties(i));
        return made;
    }();
    return all[static_cast<std::size_t>(device)];
}

using Properties = cudaDeviceProp;

template <auto kMember>
int property(const Properties& properties) {
    return static_cast<int>(properties.*kMember);
}
template <auto kMember, std::size_t kAxis>
int axis(const Properties& properties) {
    return (properties.*kMember)[kAxis];
}

/// pciBusID is the device's number plus one.
template <auto kMember>
int of_card(const Properties& properties) {
    return card_of(properties.pciBusID - 1).*kMember;
}

/// The attributes that torch and the libraries built on it ask for.
struct Attribute {
    int number;
    int (*value)(const Properties&);
};
constexpr Attribute kAttributes[] = {
    {cudaDevAttrPciBusId, property<&Properties::pciBusID>},
    {cudaDevAttrMaxThreadsPerBlock, property<&Properties::maxThreadsPerBlock>},
    {cudaDevAttrMaxBlockDimX, axis<&Properties::maxThreadsDim, 0>},
    {cudaDevAttrMaxBlockDimY, axis<&Properties::maxThreadsDim, 1>},
    {cudaDevAttrMaxBlockDimZ, axis<&Properties::maxThreadsDim, 2>},
    {cudaDevAttrMaxGridDimX, axis<&Properties::maxGridSize, 0>},
    {cudaDevAttrMaxGridDimY, axis<&Properties::maxGridSize, 1>},
    {cudaDevAttrMaxGridDimZ, axis<&Properties::maxGridSize, 2>},
    {cudaDevAttrMaxSharedMemoryPerBlock, property<&Properties::sharedMemPerBlock>},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, property<&Properties::sharedMemPerBlockOptin>},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor,
     property<&Properties::sharedMemPerMultiprocessor>},
    {cudaDevAttrReservedSharedMemoryPerBlock, property<&Properties::reservedSharedMemPerBlock>},
    {cudaDevAttrTotalConstantMemory, property<&Properties::totalConstMem>},
    {cudaDevAttrWarpSize, property<&Properties::warpSize>},
    {cudaDevAttrMaxRegistersPerBlock, property<&Properties::regsPerBlock>},
    {cudaDevAttrMaxRegistersPerMultiprocessor, property<&Properties::regsPerMultiprocessor>},
    {cudaDevAttrTextureAlignment, property<&Properties::textureAlignment>},
    {cudaDevAttrMultiProcessorCount, property<&Properties::multiProcessorCount>},
    {cudaDevAttrL2CacheSize, property<&Properties::l2CacheSize>},
    {cudaDevAttrMaxPersistingL2CacheSize, property<&Properties::persistingL2CacheMaxSize>},
    {cudaDevAttrMaxThreadsPerMultiProcessor, property<&Properties::maxThreadsPerMultiProcessor>},
    {cudaDevAttrMaxBlocksPerMultiprocessor, property<&Properties::maxBlocksPerMultiProcessor>},
    {cudaDevAttrComputeCapabilityMajor, property<&Properties::major>},
    {cudaDevAttrComputeCapabilityMinor, property<&Properties::minor>},
    {cudaDevAttrAsyncEngineCount, property<&Properties::asyncEngineCount>},
    {cudaDevAttrUnifiedAddressing, property<&Properties::unifiedAddressing>},
    {cudaDevAttrConcurrentKernels, property<&Properties::concurrentKernels>},
    {cudaDevAttrCanMapHostMemory, property<&Properties::canMapHostMemory>},
    {cudaDevAttrStreamPrioritiesSupported, property<&Properties::streamPrioritiesSupported>},
    {cudaDevAttrGlobalL1CacheSupported, property<&Properties::globalL1CacheSupported>},
    {cudaDevAttrLocalL1CacheSupported, property<&Properties::localL1CacheSupported>},
    {cudaDevAttrComputePreemptionSupported, property<&Properties::computePreemptionSupported>},
    {cudaDevAttrCooperativeLaunch, property<&Properties::cooperativeLaunch>},
    {cudaDevAttrHostRegisterSupported, property<&Properties::hostRegisterSupported>},
    {cudaDevAttrManagedMemory, property<&Properties::managedMemory>},
    {cudaDevAttrConcurrentManagedAccess, property<&Properties::concurrentManagedAccess>},
    {cudaDevAttrCanUseHostPointerForRegisteredMem,
     property<&Properties::canUseHostPointerForRegisteredMem>},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, of_card<&Card::clock_khz>},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, of_card<&Card::memory_clock_khz>},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, of_card<&Card::memory_bus_bits>},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, property<&Properties::clusterLaunch>},
    {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
     [](const Properties& p) { return p.major >= 9 ? 1 : 0; }},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, [](const Properties&) { return 1; }},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
     [](const Properties&) { return 1; }},
};

/// What a virtual GPU does not have.
constexpr int kZero[] = {CU_DEVICE_ATTRIBUTE_INTEGRATED,
                         CU_DEVICE_ATTRIBUTE_ECC_ENABLED,
                         CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT,
                         CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
                         CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
                         CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                         CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                         CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD,
                         CU_DEVICE_ATTRIBUTE_TCC_DRIVER,
                         CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
                         CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES};

/// None for an attribute of neither table.
std::optional<int> attribute_of(int device, int attribute) {
    const auto found = std::ranges::find(kAttributes, attribute, &Attribute::number);
    if (found != std::end(kAttributes)) return found->value(properties_of(device));
    if (std::ranges::find(kZero, attribute) != std::end(kZero)) return 0;
    return std::nullopt;
}

std::string name_of_attribute(int attribute) {
    return "device attribute " + std::to_string(attribute);
}

CUcontext context_of(int device) {
    return reinterpret_cast<CUcontext>(&contexts[static_cast<std::size_t>(device)]);
}

}  // namespace

cudaError_t report(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

int current_device() { return device_of_thread; }

cudaError_t set_current_device(int device) {
    if (!is_device(device)) return report(cudaErrorInvalidDevice);
    device_of_thread = device;
    contexts[static_cast<std::size_t>(device)] = true;
    return cudaSuccess;
}

bool has_context(int device) { return contexts[static_cast<std::size_t>(device)]; }

CUresult to_driver_error(cudaError_t error) {
    // The two sets of numbers agree where both have an error; the driver has no such error.
    if (error == cudaErrorInvalidConfiguration) return CUDA_ERROR_INVALID_VALUE;
    return static_cast<CUresult>(error);
}

/// By this name others find out that the process has a virtual GPU.
VIRTUAL_GPU_API int temposcope_virtual_gpu() { return num_devices(); }

// ---- the runtime --------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaGetDeviceCount(int* count) {
    *count = num_devices();
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaGetDevice(int* device) {
    *device = current_device();
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaSetDevice(int device) { return set_current_device(device); }
VIRTUAL_GPU_API cudaError_t cudaDriverGetVersion(int* version) {
    *version = torch_install().cuda;
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = torch_install().cuda;
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (!is_device(device)) return report(cudaErrorInvalidDevice);
    *properties = properties_of(device);
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                                   int device) {
    if (!is_device(device)) return report(cudaErrorInvalidDevice);
    const auto known = attribute_of(device, attribute);
    if (!known) return refuse_by_error(name_of_attribute(attribute).c_str());
    *value = *known;
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
    if (!is_device(device)) return report(cudaErrorInvalidDevice);
    std::snprintf(text, static_cast<std::size_t>(size), "00000000:%02X:00.0", device + 1);
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaDeviceSynchronize() {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
    synchronize_device(current_device());
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    if (!is_device(device) || !is_device(peer)) return report(cudaErrorInvalidDevice);
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
VIRTUAL_GPU_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaProfilerStart() { return cudaSuccess; }
VIRTUAL_GPU_API cudaError_t cudaProfilerStop() { return cudaSuccess; }

VIRTUAL_GPU_API cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
VIRTUAL_GPU_API cudaError_t cudaPeekAtLastError() { return last_error; }
VIRTUAL_GPU_API const char* cudaGetErrorName(cudaError_t error) {
    const ErrorText* const row = find_text(error);
    return row != nullptr ? row->name : "an error that the simulated GPU does not know";
}
VIRTUAL_GPU_API const char* cudaGetErrorString(cudaError_t error) {
    if (error == cudaErrorNotSupported && last_refusal() != nullptr) return last_refusal();
    const ErrorText* const row = find_text(error);
    return row != nullptr ? row->text : "an error that the simulated GPU does not know";
}

// ---- the driver ---------------------------------------------------------------------------------

VIRTUAL_GPU_API CUresult cuInit(unsigned) {
    machine();
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDriverGetVersion(int* version) {
    *version = torch_install().cuda;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceGetCount(int* count) {
    *count = num_devices();
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceGet(CUdevice* device, int index) {
    if (!is_device(index)) return CUDA_ERROR_INVALID_DEVICE;
    *device = index;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceGetName(char* text, int size, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(text, static_cast<std::size_t>(size), "%s", card_of(device).name.c_str());
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                              CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const auto known = attribute_of(device, attribute);
    if (!known) return refuse_by_driver_error(name_of_attribute(attribute).c_str());
    *value = *known;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    make_uuid(device, uuid->bytes);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = static_cast<std::size_t>(card_of(device).total_bytes);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = has_context(device) ? 1 : 0;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = context_of(device);
    return CUDA_SUCCESS;
}
/// The primary context lives as long as the process.
VIRTUAL_GPU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
VIRTUAL_GPU_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *major = card_of(device).major;
    *minor = card_of(device).minor;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = has_context(current_device()) ? context_of(current_device()) : nullptr;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxSetCurrent(CUcontext context) {
    for (int device = 0; device < num_devices(); ++device) {
        if (context_of(device) == context) return to_driver_error(set_current_device(device));
    }
    return context == nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
VIRTUAL_GPU_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    const int device = current_device();
    const CUresult result = cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) pushed_devices.push_back(device);
    return result;
}
VIRTUAL_GPU_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    if (pushed_devices.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = context_of(current_device());
    const int device = pushed_devices.back();
    pushed_devices.pop_back();
    return to_driver_error(set_current_device(device));
}
VIRTUAL_GPU_API CUresult cuCtxSynchronize() {
    synchronize_device(current_device());
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = limits[static_cast<std::size_t>(limit)];
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    limits[static_cast<std::size_t>(limit)] = value;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
    *version = static_cast<unsigned>(torch_install().cuda);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuCtxGetDevice(CUdevice* device) {
    *device = current_device();
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuGetErrorString(CUresult error, const char** text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
                                              : cudaGetErrorString(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                              : cudaGetErrorName(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}

}  // namespace profiler::virtual_gpu
