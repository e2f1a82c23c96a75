#pragma once

#include "profiler/capture/capture_callbacks.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

/// Times calls on a device that does nothing else.
namespace profiler {

using Call = std::function<void()>;

/// Waits until the device has run what it was given.
void wait_for(const at::Device& device);

struct TimedCalls {
    double median_s = 0;  // of one call
    int64_t samples = 0;
};

/// As many calls as fit into the time, at least one. Each sample is long enough for the clock. A
/// first call, which also allocates memory and loads kernels, is not counted.
/// Throws Cancelled, and what the calls throw.
TimedCalls time_calls(const at::Device& device, double seconds, const CaptureCallbacks& callbacks,
                      const Call& call);

/// Lets cuBLAS use tf32 for fp32 GEMMs while it lives.
class ScopedTf32 {
public:
    explicit ScopedTf32(bool allowed);
    ~ScopedTf32();
    ScopedTf32(const ScopedTf32&) = delete;
    ScopedTf32& operator=(const ScopedTf32&) = delete;

private:
    bool before_;
};

}  // namespace profiler
