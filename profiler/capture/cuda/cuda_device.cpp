#include "profiler/capture/cuda/cuda_device.h"

#include "profiler/capture/torch_adapter/cupti.h"
#include "profiler/trace/units.h"

#include <dlfcn.h>

#include <array>
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

/// The runtime is torch's, whatever version of CUDA that has.
int runtime_version() {
    int version = 0;
    (void)cudaRuntimeGetVersion(&version);
    return version;
}

/// The oldest driver of Linux for a version of the runtime, by CUDA's release notes: the first of
/// its major version.
int oldest_driver(int version) { return version >= 13'000 ? 580 : 525; }

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
                "Go on where there is a GPU with its driver (for CUDA {}: {} or newer); here, {}.",
                version_text(runtime_version()), oldest_driver(runtime_version()), kOnTheCpu)};
}

DeviceCount count_devices() {
    DeviceCount answer{.driver_loaded = driver_is_loaded(), .runtime_version = runtime_version()};
    answer.error = cudaGetDeviceCount(&answer.count);
    (void)cudaGetLastError();  // clears the error, which a later call would report
    if (answer.error != cudaSuccess) answer.count = 0;
    return answer;
}

int attribute_of(int device, cudaDeviceAttr attribute) {
    int value = 0;
    (void)cudaDeviceGetAttribute(&value, attribute, device);
    return value;
}

/// The struct of cudaGetDeviceProperties differs between CUDA 12 and 13, and so do the functions
/// that find the driver's functions: these two come from the driver itself.
template <typename Ask>
void ask_driver(const char* function, const Ask& ask) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    void* const found = driver != nullptr ? dlsym(driver, function) : nullptr;
    if (found != nullptr) ask(found);
}

std::string name_of_device(int index) {
    std::array<char, 256> name{};
    ask_driver("cuDeviceGetName", [&](void* function) {
        reinterpret_cast<int (*)(char*, int, int)>(function)(name.data(), name.size(), index);
    });
    return name.data();
}

int64_t bytes_of_device(int index) {
    std::size_t bytes = 0;
    ask_driver("cuDeviceTotalMem_v2", [&](void* function) {
        reinterpret_cast<int (*)(std::size_t*, int)>(function)(&bytes, index);
    });
    return static_cast<int64_t>(bytes);
}

}  // namespace

CudaCheck describe_device_count(const DeviceCount& answer) {
    const cudaError_t error = answer.error;
    CudaCheck check{.name = "device"};
    if (error == cudaSuccess && answer.count > 0) {
        check.ok = true;
        check.detail = fmt::format("{} visible to CUDA", answer.count);
        return check;
    }
    if (error == cudaErrorInsufficientDriver && answer.driver_loaded) {
        check.detail = fmt::format("the NVIDIA driver is older than CUDA {}",
                                   version_text(answer.runtime_version));
        check.remedy = fmt::format("Install driver {} or newer; until then, {}.",
                                   oldest_driver(answer.runtime_version), kOnTheCpu);
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
    DeviceCount answer = count_devices();
    int major = 0;
    if (answer.error == cudaSuccess && answer.count > 0) {
        answer.error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    }
    const CudaCheck found = describe_device_count(answer);
    if (!found.ok) return models::fail("{}", describe_problem({found}));
    return CudaDevice{.name = name_of_device(index),
                      .capability = {major, attribute_of(index, cudaDevAttrComputeCapabilityMinor)},
                      .total_bytes = bytes_of_device(index),
                      .sm_count = attribute_of(index, cudaDevAttrMultiProcessorCount),
                      .l2_bytes = attribute_of(index, cudaDevAttrL2CacheSize)};
}

int64_t virtual_nccl_bytes(int device) {
    using Ask = int64_t (*)(int);
    const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "temposcope_virtual_nccl_bytes"));
    return ask != nullptr ? ask(device) : 0;
}

bool on_virtual_gpu() { return dlsym(RTLD_DEFAULT, "temposcope_virtual_gpu") != nullptr; }

std::vector<CudaCheck> check_cuda_device() {
    CudaCheck device = describe_device_count(count_devices());
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
