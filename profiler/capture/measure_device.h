#pragma once

#include "profiler/capture/capture_callbacks.h"
#include "profiler/protocol/device_speed.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace profiler {

/// What is measured, and how large it is. The planner's convention is GEMMs of size 8192.
struct SpeedSizes {
    std::vector<int64_t> gemm_sizes;
    std::vector<std::string> types;  // "fp32", "tf32", "fp16", "bf16"
    int64_t stream_elements = 0;     // of y = 1.2 x, softmax and LayerNorm, fp32
    double seconds_per_figure = 0;   // how long each figure's calls are repeated
};
/// Sizes that take about a minute on each device.
SpeedSizes speed_sizes(const at::Device& device, bool has_tf32);

/// Measures `device`, on which nothing else should run. The figures are medians. Figures that only
/// the driver knows (name, memory, SM count) are left empty.
/// Errors: c10::Error, Cancelled.
DeviceSpeed measure_device(const at::Device& device, const SpeedSizes& sizes,
                           const CaptureCallbacks& callbacks);

}  // namespace profiler
