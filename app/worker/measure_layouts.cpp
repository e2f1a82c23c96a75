#include "app/worker/measure_layouts.h"

#include "app/worker/answers.h"
#include "app/worker/training_device.h"
#include "models/config/workload.h"
#include "profiler/capture/measure_layouts.h"
#include "profiler/capture/processor_share.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"

namespace app {
namespace {

using profiler::ResultFrame;
using profiler::WorkerOutcome;

profiler::LayoutMeasurement measurement_of(const profiler::Request& request,
                                           const models::Workload& workload) {
    return {.sizes = {.batch_size = workload.batch_size,
                      .seq_len = workload.seq_len,
                      .hidden_size = workload.model.hidden_size,
                      .num_heads = workload.model.num_heads,
                      .intermediate_size = workload.model.intermediate_size},
            .num_rounds = request.steps};
}

models::Result<std::vector<profiler::LayoutRun>> runs_of(const profiler::Request& request) {
    std::vector<profiler::LayoutRun> runs;
    for (const nlohmann::json& one : request.layout_runs) {
        auto run = profiler::layout_run_from_json(one);
        if (!run) return tl::unexpected(run.error());
        runs.push_back(std::move(*run));
    }
    return runs;
}

WorkerOutcome measure(const profiler::Request& request,
                      const profiler::LayoutMeasurement& measurement,
                      profiler::TrainingDevice& device, profiler::WorkerServer& server) try {
    if (request.kind == profiler::RequestKind::kMeasureLayouts) {
        const auto graph = device.measure_layouts(measurement, callbacks_to(server));
        return ResultFrame{.path = {}, .summary = to_json(graph), .payload = {}};
    }
    const auto runs = runs_of(request);
    if (!runs) return failure(runs.error());
    profiler::ProcessorShare processor;
    processor.begin();
    const auto times_ns = device.time_layout_runs(measurement, *runs, callbacks_to(server));
    processor.end();
    return ResultFrame{.path = {},
                       .summary = {{"times_ns", times_ns}, {"note", busy_note(request, processor)}},
                       .payload = {}};
} catch (const profiler::Cancelled&) {
    return cancellation("The measurement was cancelled.");
} catch (const std::exception& error) {
    if (profiler::is_out_of_memory(error)) {
        return failure(models::Error{"The layer does not fit into " + device.memory_name() +
                                         ": choose a smaller batch or sequence length.",
                                     {"batch_size", "seq_len"}},
                       profiler::ExitCode::kOutOfMemory);
    }
    return failure("The measurement failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_measure_layouts(const profiler::Request& request,
                                  profiler::WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    return measure(request, measurement_of(request, *workload), **device, server);
}

}  // namespace app
