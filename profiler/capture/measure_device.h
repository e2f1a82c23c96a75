#pragma once

#include "models/config/benchmark.h"
#include "profiler/capture/capture_options.h"
#include "profiler/protocol/measurements.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

/// Times of calls on a device on which nothing else runs. Figures are medians.
namespace profiler {

/// Waits until the device has run what it was given.
void wait_for(const at::Device& device);

/// Times a GEMM, a pass over a vector or a layer, as mli's transformers-benchmarks do: the median
/// of the calls that fit into `seconds`. A layer has parameters and input of the workload's
/// precision, dropout on, and an input without gradient; backward starts from the sum of the output
/// and adds to the gradients of the calls before.
/// Requires a benchmark that is not of a whole model. Throws c10::OutOfMemoryError, Cancelled,
/// c10::Error.
models::BenchmarkTime time_benchmark(const at::Device& device, const models::Benchmark& benchmark,
                                     double seconds, const CaptureCallbacks& callbacks);

/// What is measured, and how large it is. The planner's convention is GEMMs of size 8192.
struct SpeedSizes {
    std::vector<int64_t> gemm_sizes;
    std::vector<std::string> types;  // "fp32", "tf32", "fp16", "bf16"
    int64_t stream_elements = 0;     // of y = 1.2 x, softmax and LayerNorm, fp32
    double seconds_per_figure = 0;   // how long each figure's calls are repeated
};
/// Sizes that take about a minute on each device.
SpeedSizes speed_sizes(const at::Device& device, bool has_tf32);

/// The speeds that `device` reaches. Figures that only the driver knows (name, memory, SM count)
/// are left empty.
/// Errors: c10::Error, Cancelled.
DeviceSpeed measure_device(const at::Device& device, const SpeedSizes& sizes,
                           const CaptureCallbacks& callbacks);

}  // namespace profiler
