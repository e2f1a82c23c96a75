#include "profiler/capture/cuda/device_monitor.h"

#include <c10/cuda/CUDAException.h>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvml.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

namespace profiler {

struct DeviceMonitor::Functions {
    decltype(&nvmlInit_v2) init = nullptr;
    decltype(&nvmlShutdown) shutdown = nullptr;
    decltype(&nvmlDeviceGetHandleByPciBusId_v2) find_device = nullptr;
    decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
    decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes = nullptr;
    decltype(&nvmlDeviceGetClockInfo) clock = nullptr;

    bool find_all(void* library) {
        const auto find = [&]<typename Function>(const char* name, Function& function) {
            function = reinterpret_cast<Function>(dlsym(library, name));
            return function != nullptr;
        };
        return find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
               find("nvmlDeviceGetHandleByPciBusId_v2", find_device) &&
               find("nvmlDeviceGetMemoryInfo", memory) &&
               find("nvmlDeviceGetComputeRunningProcesses_v3", processes) &&
               find("nvmlDeviceGetClockInfo", clock);
    }
};

DeviceMonitor::DeviceMonitor(int device) {
    std::array<char, 32> bus{};
    if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) != cudaSuccess) {
        (void)cudaGetLastError();
        return;
    }
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    auto functions = std::make_unique<Functions>();
    if (!functions->find_all(library_) || functions->init() != NVML_SUCCESS) return;
    functions_ = std::move(functions);
    nvmlDevice_t found = nullptr;
    if (functions_->find_device(bus.data(), &found) == NVML_SUCCESS) device_ = found;
}

DeviceMonitor::~DeviceMonitor() {
    if (functions_ != nullptr) functions_->shutdown();
    if (library_ != nullptr) dlclose(library_);
}

int64_t DeviceMonitor::nvml_used_bytes() const {
    if (!has_nvml()) return -1;
    nvmlMemory_t memory{};
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->memory(device, &memory) != NVML_SUCCESS) return -1;
    return static_cast<int64_t>(memory.used);
}

int64_t DeviceMonitor::process_bytes() const {
    if (!has_nvml()) return -1;
    constexpr unsigned int kMostProcesses = 256;
    std::vector<nvmlProcessInfo_t> processes(kMostProcesses);
    unsigned int count = kMostProcesses;
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->processes(device, &count, processes.data()) != NVML_SUCCESS) return -1;
    constexpr auto kNotAvailable = static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE);
    const auto self = static_cast<unsigned int>(::getpid());
    for (unsigned int i = 0; i < count; ++i) {
        const unsigned long long bytes = processes[i].usedGpuMemory;
        if (processes[i].pid != self || bytes == kNotAvailable) continue;
        return static_cast<int64_t>(bytes);
    }
    return -1;  // in a container the driver knows us by another number
}

int64_t DeviceMonitor::sm_clock_hz() const {
    if (!has_nvml()) return -1;
    unsigned int megahertz = 0;
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->clock(device, NVML_CLOCK_SM, &megahertz) != NVML_SUCCESS) return -1;
    return int64_t{megahertz} * 1'000'000;
}

DeviceMonitor::MemoryInfo DeviceMonitor::cuda_memory() {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
}

}  // namespace profiler
