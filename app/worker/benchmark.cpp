#include "app/worker/benchmark.h"

#include "app/worker/answers.h"
#include "app/worker/training_device.h"
#include "models/config/benchmark.h"
#include "profiler/capture/processor_share.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::BenchmarkTime;
using profiler::ResultFrame;
using profiler::WorkerOutcome;

/// Steps of a whole model, at its batch: the median of their times and the peak of their memory.
BenchmarkTime time_steps(profiler::TrainingDevice& device, const profiler::Request& request,
                         const models::Workload& workload,
                         const profiler::CaptureCallbacks& callbacks) {
    profiler::Trace trace;
    device.sweep(workload, {.memory_limit_bytes = request.memory_limit_bytes},
                 {.batch_sizes = {workload.batch_size},
                  .warmup_steps = request.warmup_steps,
                  .steps = request.steps},
                 callbacks, trace);
    const auto point = trace.sweep_points[profiler::Id<profiler::SweepPoint>(std::size_t{0})];
    if (point.outcome == profiler::SweepOutcome::kOutOfMemory) return {.out_of_memory = true};
    const auto column = trace.sweep_samples.column<&profiler::SweepSample::step_time_ns>();
    std::vector<int64_t> times_ns(column.begin(), column.end());
    const auto middle = times_ns.begin() + static_cast<std::ptrdiff_t>(times_ns.size() / 2);
    std::nth_element(times_ns.begin(), middle, times_ns.end());
    return {.time_ns = *middle,
            .samples = static_cast<int64_t>(times_ns.size()),
            .peak_allocated_bytes = point.peak_allocated_bytes};
}

models::Result<void> validate(profiler::TrainingDevice& device, const Benchmark& benchmark) {
    switch (benchmark.kind) {
        case BenchmarkKind::kLayer:
            return device.validate(models::layer_workload(benchmark.workload));
        case BenchmarkKind::kModel:
            return device.validate(benchmark.workload);
        default:
            return {};
    }
}

WorkerOutcome answer(const BenchmarkTime& time, profiler::TrainingDevice& device,
                     std::string note = {}) {
    nlohmann::json summary = to_json(time);
    summary["device"] = device.name();
    summary["note"] = std::move(note);
    return ResultFrame{.path = {}, .summary = std::move(summary), .payload = {}};
}

WorkerOutcome measure(profiler::TrainingDevice& device, const profiler::Request& request,
                      const Benchmark& benchmark, profiler::WorkerServer& server) try {
    const profiler::CaptureCallbacks callbacks = callbacks_to(server);
    profiler::ProcessorShare processor;
    processor.begin();
    const BenchmarkTime time = benchmark.kind == BenchmarkKind::kModel
                                   ? time_steps(device, request, benchmark.workload, callbacks)
                                   : device.time_benchmark(benchmark, request.seconds, callbacks);
    processor.end();
    return answer(time, device, busy_note(request, processor));
} catch (const profiler::Cancelled&) {
    return cancellation("The benchmark was cancelled.");
} catch (const std::exception& error) {
    if (profiler::is_out_of_memory(error)) return answer({.out_of_memory = true}, device);
    return failure("The benchmark failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_benchmark(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto benchmark = models::benchmark_from_json(request.benchmark);
    if (!benchmark) return failure(benchmark.error());
    if (const auto ok = validate(**device, *benchmark); !ok) return failure(ok.error());
    return measure(**device, request, *benchmark, server);
}

}  // namespace app
