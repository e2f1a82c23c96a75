#pragma once

#include "app/commands/console/outcome.h"
#include "models/config/benchmark.h"

#include <cstdint>
#include <string>
#include <vector>

namespace app {

struct MeasureBenchmarksOptions {
    std::string device = "cpu";  // or "cuda", or "auto"
    double seconds = 3;          // how long the calls of one figure are repeated
    int64_t steps = 3;           // of a model, after a warm-up step
};

struct MeasuredBenchmark {
    models::BenchmarkTime time;
    std::string reason;  // why the device cannot run it; empty: it ran, or memory did not suffice
    std::string note;    // that the machine was busy; else empty
};

struct MeasuredBenchmarks {
    std::string device;                   // its name
    std::vector<MeasuredBenchmark> rows;  // by benchmark
};

/// Times each benchmark on a device of this machine, one after the other in `temposcope-worker`,
/// and shows the progress. A benchmark that cannot run does not stop the others.
/// Errors: cancelled; the worker is missing; no benchmark could run.
tl::expected<MeasuredBenchmarks, Failure> measure_benchmarks(
    const std::vector<models::Benchmark>& benchmarks, const MeasureBenchmarksOptions& options);

}  // namespace app
