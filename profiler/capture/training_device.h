#pragma once

#include "models/config/benchmark.h"
#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"
#include "profiler/layouts/layout_plan.h"
#include "profiler/protocol/measurements.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace profiler {

struct LiveMemory {
    int64_t allocated_bytes = 0;
    int64_t peak_bytes = 0;
};

/// A device that trains and is recorded: the processor (cpu_capture.h), or a GPU (cuda_source.h).
class TrainingDevice {
public:
    virtual ~TrainingDevice() = default;

    /// Errors: one sentence on why the device cannot run the workload.
    virtual models::Result<void> validate(const models::Workload& workload) = 0;
    /// Trains `workload` and records `options.steps` steps into `trace`, which must be empty.
    /// `options.memory_limit_bytes` emulates a device with less memory.
    /// Throws c10::OutOfMemoryError, Cancelled, c10::Error.
    virtual void capture(const models::Workload& workload, const CaptureOptions& options,
                         const CaptureCallbacks& callbacks, Trace& trace) = 0;
    /// Adds to `trace` the largest batch that trains and the step time at each batch tried. A batch
    /// that does not fit is a result, not an error. Throws Cancelled, c10::Error.
    virtual void sweep(const models::Workload& workload, const CaptureOptions& options,
                       const SweepOptions& sweep, const CaptureCallbacks& callbacks,
                       Trace& trace) = 0;
    /// Times a GEMM, a pass over a vector or a layer for about `seconds`. Benchmarks of whole
    /// models are sweeps. Throws c10::OutOfMemoryError, Cancelled, c10::Error.
    virtual models::BenchmarkTime time_benchmark(const models::Benchmark& benchmark, double seconds,
                                                 const CaptureCallbacks& callbacks) = 0;
    /// The speeds that the device reaches, measured in about a minute.
    virtual DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) = 0;
    /// The times of an encoder layer's ops in every dimension order (measure_layouts.h).
    virtual LayoutGraph measure_layouts(const LayoutMeasurement& measurement,
                                        const CaptureCallbacks& callbacks) = 0;
    /// The median times of whole layers that run in turn.
    virtual std::vector<double> time_layout_runs(const LayoutMeasurement& measurement,
                                                 const std::vector<LayoutRun>& runs,
                                                 const CaptureCallbacks& callbacks) = 0;
    /// "NVIDIA H200". Throws c10::Error.
    virtual std::string name() = 0;
    /// "the memory of this machine"
    virtual std::string memory_name() const = 0;
    /// Whether several workers may be set up at once. False where a waiting worker holds memory
    /// that another one's measurement needs.
    virtual bool can_take_turns() const = 0;

    // Any thread, also while a capture runs.
    virtual LiveMemory live_memory() const = 0;
    virtual OutOfMemoryDetail last_out_of_memory() const = 0;
};

}  // namespace profiler
