#pragma once

#include <cstdint>
#include <memory>

namespace profiler {

/// What the driver says of a device's memory, through NVML and CUDA.
///
/// NVML is opened at run time and needs no CUDA context, so that it can tell what was in use before
/// there was one. Where it is missing, or sees only parts (containers hide processes), figures are
/// -1: not known.
class DeviceMonitor {
public:
    /// Of CUDA's device `device`. Makes no context.
    explicit DeviceMonitor(int device);
    ~DeviceMonitor();
    DeviceMonitor(const DeviceMonitor&) = delete;
    DeviceMonitor& operator=(const DeviceMonitor&) = delete;

    bool has_nvml() const { return device_ != nullptr; }
    int64_t nvml_used_bytes() const;  // of the whole device
    int64_t process_bytes() const;    // of this process
    int64_t sm_clock_hz() const;

    struct MemoryInfo {
        int64_t free_bytes = 0;
        int64_t total_bytes = 0;
    };
    /// CUDA's own figure; makes the context if there is none. Throws c10::Error.
    static MemoryInfo cuda_memory();

private:
    struct Functions;
    void* library_ = nullptr;
    std::unique_ptr<Functions> functions_;
    void* device_ = nullptr;  // nvmlDevice_t
};

}  // namespace profiler
