#include "app/worker/answers.h"
#include "models/config/benchmark.h"
#include "models/config/workload.h"
#include "profiler/capture/measure_layouts.h"
#include "profiler/capture/processor_share.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace app {

using models::Benchmark;
using models::BenchmarkKind;
using models::BenchmarkTime;
using namespace profiler;

namespace {

/// The note of a measurement on a processor; a GPU's times do not depend on the host's threads.
std::string busy_note(const Request& request, const ProcessorShare& processor) {
    return request.device == "cpu" ? busy_machine_note(processor.share()) : "";
}

}  // namespace

// ---- benchmarks ---------------------------------------------------------------------------------

namespace {

/// Steps of a whole model, at its batch: the median of their times and the peak of their memory.
BenchmarkTime time_steps(TrainingDevice& device, const Request& request,
                         const models::Workload& workload, const CaptureCallbacks& callbacks) {
    Trace trace;
    device.sweep(workload, {.memory_limit_bytes = request.memory_limit_bytes},
                 {.batch_sizes = {workload.batch_size},
                  .warmup_steps = request.warmup_steps,
                  .steps = request.steps},
                 callbacks, trace);
    const auto point = trace.sweep_points[Id<SweepPoint>(std::size_t{0})];
    if (point.outcome == SweepOutcome::kOutOfMemory) return {.out_of_memory = true};
    const auto column = trace.sweep_samples.column<&SweepSample::step_time_ns>();
    return {.time_ns = median(std::vector<int64_t>(column.begin(), column.end())),
            .samples = static_cast<int64_t>(column.size()),
            .peak_allocated_bytes = point.peak_allocated_bytes};
}

models::Result<void> validate(TrainingDevice& device, const Benchmark& benchmark) {
    switch (benchmark.kind) {
        case BenchmarkKind::kLayer:
            return device.validate(models::layer_workload(benchmark.workload));
        case BenchmarkKind::kModel:
            return device.validate(benchmark.workload);
        default:
            return {};
    }
}

WorkerOutcome answer(const BenchmarkTime& time, TrainingDevice& device, std::string note = {}) {
    nlohmann::json summary = to_json(time);
    summary["device"] = device.name();
    summary["note"] = std::move(note);
    return ResultFrame{.path = {}, .summary = std::move(summary), .payload = {}};
}

WorkerOutcome measure_benchmark(TrainingDevice& device, const Request& request,
                                const Benchmark& benchmark, WorkerServer& server) try {
    const CaptureCallbacks callbacks = callbacks_to(server);
    ProcessorShare processor;
    processor.begin();
    const BenchmarkTime time = benchmark.kind == BenchmarkKind::kModel
                                   ? time_steps(device, request, benchmark.workload, callbacks)
                                   : device.time_benchmark(benchmark, request.seconds, callbacks);
    processor.end();
    return answer(time, device, busy_note(request, processor));
} catch (const Cancelled&) {
    return cancellation("The benchmark was cancelled.");
} catch (const std::exception& error) {
    if (is_out_of_memory(error)) return answer({.out_of_memory = true}, device);
    return failure("The benchmark failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_benchmark(const Request& request, WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto benchmark = models::benchmark_from_json(request.benchmark);
    if (!benchmark) return failure(benchmark.error());
    if (const auto ok = validate(**device, *benchmark); !ok) return failure(ok.error());
    return measure_benchmark(**device, request, *benchmark, server);
}

// ---- the speed of the device --------------------------------------------------------------------

namespace {

WorkerOutcome measure_speed(TrainingDevice& device, WorkerServer& server) try {
    const auto speed = device.measure_speed(callbacks_to(server));
    return ResultFrame{.path = {}, .summary = to_json(speed), .payload = {}};
} catch (const Cancelled&) {
    return cancellation("The measurement was cancelled; your calibration is as before.");
} catch (const std::exception& error) {
    if (is_out_of_memory(error)) {
        return failure("The measurement needs memory that " + device.memory_name() +
                       " has not free: end what else uses it.");
    }
    return failure("The measurement failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_calibrate(const Request& request, WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    return measure_speed(**device, server);
}

// ---- layouts of an encoder layer ----------------------------------------------------------------

namespace {

LayoutMeasurement measurement_of(const Request& request, const models::Workload& workload) {
    return {.sizes = {.batch_size = workload.batch_size,
                      .seq_len = workload.seq_len,
                      .hidden_size = workload.model.hidden_size,
                      .num_heads = workload.model.num_heads,
                      .intermediate_size = workload.model.intermediate_size},
            .num_rounds = request.steps};
}

models::Result<std::vector<LayoutRun>> runs_of(const Request& request) {
    std::vector<LayoutRun> runs;
    for (const nlohmann::json& one : request.layout_runs) {
        auto run = layout_run_from_json(one);
        if (!run) return tl::unexpected(run.error());
        runs.push_back(std::move(*run));
    }
    return runs;
}

WorkerOutcome measure_layout_times(const Request& request, const LayoutMeasurement& measurement,
                                   TrainingDevice& device, WorkerServer& server) try {
    if (request.kind == RequestKind::kMeasureLayouts) {
        const auto graph = device.measure_layouts(measurement, callbacks_to(server));
        return ResultFrame{.path = {}, .summary = to_json(graph), .payload = {}};
    }
    const auto runs = runs_of(request);
    if (!runs) return failure(runs.error());
    ProcessorShare processor;
    processor.begin();
    const auto times_ns = device.time_layout_runs(measurement, *runs, callbacks_to(server));
    processor.end();
    return ResultFrame{.path = {},
                       .summary = {{"times_ns", times_ns}, {"note", busy_note(request, processor)}},
                       .payload = {}};
} catch (const Cancelled&) {
    return cancellation("The measurement was cancelled.");
} catch (const std::exception& error) {
    if (is_out_of_memory(error)) {
        return failure(models::Error{"The layer does not fit into " + device.memory_name() +
                                         ": choose a smaller batch or sequence length.",
                                     {"batch_size", "seq_len"}},
                       ExitCode::kOutOfMemory);
    }
    return failure("The measurement failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_measure_layouts(const Request& request, WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    return measure_layout_times(request, measurement_of(request, *workload), **device, server);
}

}  // namespace app
