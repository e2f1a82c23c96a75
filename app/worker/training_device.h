#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/protocol/device_speed.h"

#include <memory>
#include <string>
#include <string_view>

namespace app {

/// Where the worker trains and records: the processor or the GPU.
class TrainingDevice {
public:
    virtual ~TrainingDevice() = default;

    /// Whether it can run the workload. Errors: one sentence.
    virtual models::Result<void> validate(const models::Workload& workload) = 0;
    virtual void capture(const models::Workload& workload, const profiler::CaptureOptions& options,
                         const profiler::CaptureCallbacks& callbacks, profiler::Trace& trace) = 0;
    virtual void sweep(const models::Workload& workload, const profiler::CaptureOptions& options,
                       const profiler::SweepOptions& sweep,
                       const profiler::CaptureCallbacks& callbacks, profiler::Trace& trace) = 0;
    virtual profiler::LiveMemory live_memory() const = 0;
    virtual profiler::OutOfMemoryDetail last_out_of_memory() const = 0;
    /// What it reaches, measured in about a minute.
    virtual profiler::DeviceSpeed measure_speed(const profiler::CaptureCallbacks& callbacks) = 0;
    /// "the memory of this machine"
    virtual std::string memory_name() const = 0;
    /// Whether several workers may be set up at once: not where each fills the device's memory.
    virtual bool can_take_turns() const = 0;
};

/// The device of a request: "cpu", "cuda", or "auto": the GPU if it can be used. Errors: one
/// sentence on what is missing for it, and how to go on.
models::Result<std::unique_ptr<TrainingDevice>> find_training_device(std::string_view name);

/// Every part that CUDA needs, for doctor. Opens libtorch_cuda and our modules.
std::vector<profiler::CudaCheck> check_cuda();

}  // namespace app
