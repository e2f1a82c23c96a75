#pragma once

#include "profiler/capture/cuda_source.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace profiler {

/// The CUDA source: real training steps on a GPU, recorded. docs/cuda_capture.md says how.
class CudaCapture final : public CudaSource {
public:
    models::Result<CudaDevice> device() override;
    std::vector<CudaCheck> checks() override;
    void capture(const models::Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override;
    void sweep(const models::Workload& workload, const CaptureOptions& options,
               const SweepOptions& sweep, const CaptureCallbacks& callbacks, Trace& trace) override;
    LiveMemory live_memory() const override;
    OutOfMemoryDetail last_out_of_memory() const override;

private:
    /// What CUDA took for itself before the first tensor of this process; none: not measured yet.
    std::optional<int64_t> cuda_bytes_;
    /// Set once CUDA is initialized: before that another thread must not ask its allocator.
    std::atomic<bool> has_allocator_ = false;
};

}  // namespace profiler
