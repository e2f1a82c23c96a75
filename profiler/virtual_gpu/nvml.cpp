#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/device_memory.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <unistd.h>
#include <cstdlib>
#include <cstring>

/// NVML: the memory in use. A virtual GPU has no clocks.
namespace profiler::virtual_gpu {
namespace {

/// Handles are device numbers from 1 on.
nvmlDevice_t handle_of(int device) {
    return reinterpret_cast<nvmlDevice_t>(static_cast<uintptr_t>(device) + 1);
}
int device_of(nvmlDevice_t handle) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(handle)) - 1;
}
unsigned num_devices() { return static_cast<unsigned>(machine().cards.size()); }

unsigned long long used_bytes(int device) {
    const DeviceMemory& memory = Memories::instance()[device];
    return static_cast<unsigned long long>(memory.total_bytes() - memory.free_bytes());
}

/// Only this process runs there.
template <typename ProcessInfo>
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned* count, ProcessInfo* processes) {
    const bool fits = *count >= 1;
    *count = 1;
    if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
    processes[0] = {};
    processes[0].pid = static_cast<unsigned>(getpid());
    processes[0].usedGpuMemory = used_bytes(device_of(device));
    return NVML_SUCCESS;
}

}  // namespace

VIRTUAL_GPU_API nvmlReturn_t nvmlInit_v2() { return NVML_SUCCESS; }
VIRTUAL_GPU_API nvmlReturn_t nvmlInit() { return NVML_SUCCESS; }
VIRTUAL_GPU_API nvmlReturn_t nvmlInitWithFlags(unsigned) { return NVML_SUCCESS; }
VIRTUAL_GPU_API nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }

VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
    *count = num_devices();
    return NVML_SUCCESS;
}
/// The same under the name by which torch's Python asks.
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
    return nvmlDeviceGetCount_v2(count);
}
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
    if (index >= num_devices()) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(static_cast<int>(index));
    return NVML_SUCCESS;
}
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus,
                                                              nvmlDevice_t* device) {
    // "00000000:01:00.0", as cudaDeviceGetPCIBusId gives it
    const char* const colon = std::strchr(bus, ':');
    const long number = colon != nullptr ? std::strtol(colon + 1, nullptr, 16) : 0;
    if (number < 1 || number > static_cast<long>(num_devices())) return NVML_ERROR_NOT_FOUND;
    *device = handle_of(static_cast<int>(number) - 1);
    return NVML_SUCCESS;
}
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
    const auto total =
        static_cast<unsigned long long>(Memories::instance()[device_of(device)].total_bytes());
    const unsigned long long used = used_bytes(device_of(device));
    *memory = {.total = total, .free = total - used, .used = used};
    return NVML_SUCCESS;
}
/// Two versions of the list are in use. torch asks for the first.
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
                                                                  unsigned* count,
                                                                  nvmlProcessInfo_v1_t* processes) {
    return list_processes(device, count, processes);
}
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                     unsigned* count,
                                                                     nvmlProcessInfo_t* processes) {
    return list_processes(device, count, processes);
}
/// No fabric of NVLinks over many machines. Torch asks since 2.13, before it makes expandable
/// segments.
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t,
                                                         nvmlGpuFabricInfoV_t* information) {
    information->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    information->status = NVML_SUCCESS;
    return NVML_SUCCESS;
}
VIRTUAL_GPU_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned*) {
    return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace profiler::virtual_gpu
