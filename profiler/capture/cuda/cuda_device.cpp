#include "profiler/capture/cuda/cuda_device.h"

#include "profiler/capture/torch_adapter/cupti.h"
#include "profiler/trace/units.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>

namespace profiler {
namespace {

constexpr const char* kDriverVersion = "/proc/driver/nvidia/version";

std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// The Windows Subsystem for Linux has a driver without this file.
bool driver_is_loaded() {
    int version = 0;
    return std::filesystem::exists(kDriverVersion) ||
           (cudaDriverGetVersion(&version) == cudaSuccess && version > 0);
}

CudaCheck check_driver() {
    std::ifstream file(kDriverVersion);
    std::string line;
    std::getline(file, line);
    int version = 0;  // 0 without a driver
    (void)cudaDriverGetVersion(&version);
    if (!line.empty() || version > 0) {
        return {.name = "driver",
                .ok = true,
                .detail = fmt::format("{}for CUDA {}", line.empty() ? line : line + "; ",
                                      version_text(version))};
    }
    return {.name = "driver",
            .detail = "no NVIDIA driver is loaded",
            .remedy = fmt::format(
                "Go on where there is a GPU with its driver (for CUDA 13.0: 580 or newer); here, "
                "{}.",
                kOnTheCpu)};
}

int count_devices(cudaError_t& error) {
    int count = 0;
    error = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();  // clears the error, which a later call would report
    return error == cudaSuccess ? count : 0;
}

}  // namespace

CudaCheck describe_device_count(cudaError_t error, int count, bool driver_loaded) {
    CudaCheck check{.name = "device"};
    if (error == cudaSuccess && count > 0) {
        check.ok = true;
        check.detail = fmt::format("{} visible to CUDA", count);
        return check;
    }
    if (error == cudaErrorInsufficientDriver && driver_loaded) {
        check.detail = "the NVIDIA driver is older than CUDA 13.0";
        check.remedy = fmt::format("Install driver 580 or newer; until then, {}.", kOnTheCpu);
    } else if (error == cudaErrorInsufficientDriver) {
        check.detail = "there is no NVIDIA driver";
        check.remedy =
            fmt::format("Go on where there is a GPU with its driver; here, {}.", kOnTheCpu);
    } else if (error == cudaErrorNoDevice || error == cudaSuccess) {
        check.detail = "the driver shows no GPU to this process";
        check.remedy = fmt::format(
            "Look at nvidia-smi and CUDA_VISIBLE_DEVICES (in a container, at its GPU options); "
            "until then, {}.",
            kOnTheCpu);
    } else {
        check.detail = fmt::format("CUDA cannot count its devices: {}", cudaGetErrorString(error));
        check.remedy =
            fmt::format("Look at nvidia-smi and the kernel's log; until then, {}.", kOnTheCpu);
    }
    return check;
}

models::Result<void> check_allocator(std::string_view backend, bool uncached) {
    if (backend != "native") {
        return models::fail(
            "torch is told to use the allocator '{}', whose actions cannot be recorded: take "
            "'backend' out of PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF.",
            backend);
    }
    if (uncached) {
        return models::fail(
            "PYTORCH_NO_CUDA_MEMORY_CACHING is set, and without the caching allocator nothing can "
            "be recorded: unset it.");
    }
    return {};
}

models::Result<CudaDevice> find_cuda_device(int index) {
    cudaError_t error = cudaSuccess;
    const int count = count_devices(error);
    const CudaCheck found = describe_device_count(error, count, driver_is_loaded());
    if (!found.ok) return models::fail("{}", describe_problem({found}));
    cudaDeviceProp properties{};
    if (error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
        return models::fail("{}", describe_problem({describe_device_count(error, 0, true)}));
    }
    return CudaDevice{.name = properties.name,
                      .capability = {properties.major, properties.minor},
                      .total_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                      .sm_count = properties.multiProcessorCount,
                      .l2_bytes = properties.l2CacheSize};
}

int64_t virtual_nccl_bytes(int device) {
    using Ask = int64_t (*)(int);
    const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "temposcope_virtual_nccl_bytes"));
    return ask != nullptr ? ask(device) : 0;
}

bool on_virtual_gpu() { return dlsym(RTLD_DEFAULT, "temposcope_virtual_gpu") != nullptr; }

std::vector<CudaCheck> check_cuda_device() {
    cudaError_t error = cudaSuccess;
    const int count = count_devices(error);
    CudaCheck device = describe_device_count(error, count, driver_is_loaded());
    if (device.ok) {
        if (const auto found = find_cuda_device()) {
            device.detail =
                fmt::format("{}, {}, compute capability {}", found->name,
                            format_bytes(found->total_bytes), models::to_text(found->capability));
        }
    }
    return {check_driver(), std::move(device)};
}

CudaCheck check_cupti() {
    const auto cupti = open_cupti();
    if (!cupti) {
        return {.name = "cupti",
                .detail = cupti.error().message,
                .remedy = "Captures on CUDA go on without kernels."};
    }
    return {.name = "cupti",
            .ok = true,
            .detail = fmt::format("API {}, {}", cupti->version, cupti->path)};
}

}  // namespace profiler
