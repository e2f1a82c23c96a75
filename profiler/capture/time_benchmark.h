#pragma once

#include "models/config/benchmark.h"
#include "profiler/capture/capture_callbacks.h"

#include <c10/core/Device.h>

namespace profiler {

/// Times a GEMM, a pass over a vector or a layer, as mli's transformers-benchmarks do: the median
/// of the calls that fit into `seconds`. A layer has parameters and input of the workload's
/// precision, dropout on, and an input without gradient; backward starts from the sum of the output
/// and adds to the gradients of the calls before.
/// Requires a benchmark that is not of a whole model. Throws c10::OutOfMemoryError, Cancelled,
/// c10::Error.
models::BenchmarkTime time_benchmark(const at::Device& device, const models::Benchmark& benchmark,
                                     double seconds, const CaptureCallbacks& callbacks);

}  // namespace profiler
