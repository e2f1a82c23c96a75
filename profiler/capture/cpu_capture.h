#pragma once

#include "models/config/benchmark.h"
#include "models/config/workload.h"
#include "profiler/capture/capture_options.h"
#include "profiler/trace/trace.h"

/// The CPU source: real training steps on libtorch, every allocation recorded.
namespace profiler {

/// Trains `workload` and records `options.steps` steps into `trace`, which must be empty.
/// Throws c10::OutOfMemoryError over the limit, Cancelled, c10::Error.
void capture_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                    const CaptureCallbacks& callbacks, Trace& trace);

/// Adds to `trace` the largest batch that trains and the step time at each batch tried. A batch
/// that does not fit is a result, not an error.
void sweep_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                  const SweepOptions& sweep, const CaptureCallbacks& callbacks, Trace& trace);

/// TrainingDevice::time_benchmark within the memory of this machine.
models::BenchmarkTime benchmark_on_cpu(const models::Benchmark& benchmark, double seconds,
                                       const CaptureCallbacks& callbacks);

}  // namespace profiler
