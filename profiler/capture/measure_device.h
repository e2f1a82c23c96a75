#pragma once

#include "profiler/capture/capture_callbacks.h"
#include "profiler/protocol/device_speed.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace profiler {

/// What is measured, and how large it is. The planner's convention is products of 8192.
struct SpeedSizes {
    std::vector<int64_t> products;
    std::vector<std::string> types;  // "fp32", "tf32", "fp16", "bf16"
    int64_t stream_elements = 0;     // of y = 1.2 x, softmax and LayerNorm, fp32
    double seconds_per_figure = 0;   // repeats go on until then
};
/// About a minute of each device.
SpeedSizes speed_sizes(const at::Device& device, bool has_tf32);

/// Measures on `device`, which must be there, with nothing else running on it; without what only
/// the device's driver knows. The figures are medians.
/// Errors: c10::Error, Cancelled.
DeviceSpeed measure_device(const at::Device& device, const SpeedSizes& sizes,
                           const CaptureCallbacks& callbacks);

}  // namespace profiler
