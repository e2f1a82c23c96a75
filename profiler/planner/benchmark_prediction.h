#pragma once

#include "models/config/benchmark.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/step/batch_interpolation.h"

#include <string>
#include <vector>

namespace profiler {

struct PredictedBenchmark {
    models::BenchmarkTime time;      // without samples
    std::vector<std::string> notes;  // assumptions
};

/// How long a benchmark takes on a GPU. A layer is traced as on that GPU, and its ops are timed. A
/// model's step has the memory and the time of its plan. As in a measurement, a layer's gradients
/// are added to existing gradients.
/// Errors: what the GPU or the software environment cannot run; errors of the source.
models::Result<PredictedBenchmark> predict_benchmark(const models::Benchmark& benchmark,
                                                     const Gpu& gpu,
                                                     const SoftwareEnvironment& environment,
                                                     const PlannerData& data,
                                                     const StepSource& source);

}  // namespace profiler
