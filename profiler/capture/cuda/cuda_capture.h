#pragma once

#include "profiler/capture/cuda_source.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace profiler {

/// Trains on a GPU and records the steps. docs/cuda_capture.md says how.
class CudaCapture final : public CudaSource {
public:
    models::Result<CudaDevice> device() override;
    std::vector<CudaCheck> checks() override;
    void capture(const models::Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override;
    void sweep(const models::Workload& workload, const CaptureOptions& options,
               const SweepOptions& sweep, const CaptureCallbacks& callbacks, Trace& trace) override;
    models::Result<void> validate(const models::Workload& workload) override;
    models::BenchmarkTime time_benchmark(const models::Benchmark& benchmark, double seconds,
                                         const CaptureCallbacks& callbacks) override;
    DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) override;
    LayoutGraph measure_layouts(const LayoutMeasurement& measurement,
                                const CaptureCallbacks& callbacks) override;
    std::vector<double> time_layout_runs(const LayoutMeasurement& measurement,
                                         const std::vector<LayoutRun>& runs,
                                         const CaptureCallbacks& callbacks) override;
    void predict_step(const models::Workload& workload, const PredictedStepOptions& options,
                      const CaptureCallbacks& callbacks, Trace& trace) override;
    std::string name() override;
    std::unique_ptr<ProgramDevice> record_program(int device, Trace& trace) override;
    std::string memory_name() const override;
    /// A worker that waits would hold memory of the GPU that the others' measurements need.
    bool can_take_turns() const override { return false; }
    LiveMemory live_memory() const override;
    OutOfMemoryDetail last_out_of_memory() const override;

private:
    /// Memory that CUDA took for itself before the first tensor of this process; none: not yet
    /// known.
    std::optional<int64_t> cuda_bytes_;
    /// Set once CUDA is initialized. Before that, other threads must not ask its allocator.
    std::atomic<bool> has_allocator_ = false;
};

}  // namespace profiler
