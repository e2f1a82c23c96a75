#pragma once

#include "app/commands/options/command_line.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/reports/chart_files.h"
#include "app/user/usual_setup.h"
#include "models/config/benchmark.h"
#include "profiler/planner/plan.h"

#include <cstdint>
#include <string>
#include <vector>

/// The options of `temposcope bench`, and what they ask for.
namespace app {

struct BenchOptions {
    std::string what;             // "matmul", ..., or "charts"
    std::string device = "auto";  // a list of devices
    std::string setup = usual_setup();
    std::string models, recipes, precisions, sizes, lengths, batches, micro_batches;  // lists
    StepForm workload;  // head, padding, sizes of the model, dropout, seed
    std::optional<double> seconds;
    int64_t steps = 3;
    ChartsForm charts;
    std::string output;
    bool names_setup = false;  // --setup was given
};

/// One benchmark on one GPU that is predicted.
struct PredictedTask {
    models::Benchmark benchmark;
    const profiler::Gpu* gpu = nullptr;
    const profiler::SoftwareEnvironment* environment = nullptr;
    std::string published_setup = {};  // of `charts`: where the published figure was measured
};

struct BenchRequest {
    std::vector<models::Benchmark> measured;  // on `device`
    std::string device;                       // "cpu", "cuda" or "auto"; empty: nothing is measured
    std::vector<PredictedTask> predicted;     // point into the planner's data
    double seconds = 3;                       // how long the calls of one figure are repeated
    int64_t steps = 3;                        // of a model, after a warm-up step
};

/// Errors: wrong usage. What a device cannot run is none: its row says so.
models::Result<BenchRequest> make_bench_request(const BenchOptions& options,
                                                const profiler::PlannerData& data);

}  // namespace app
