#include "app/worker/try_batches.h"

#include "app/worker/answers.h"
#include "app/worker/training_device.h"
#include "models/config/workload.h"
#include "profiler/protocol/measured_batches.h"
#include "profiler/trace/available_memory.h"

#include <algorithm>

namespace app {
namespace {

using profiler::Id;
using profiler::MeasuredBatches;
using profiler::ResultFrame;
using profiler::SweepOutcome;
using profiler::SweepPoint;
using profiler::Trace;
using profiler::WorkerOutcome;

MeasuredBatches batches_of(const Trace& trace) {
    MeasuredBatches tried{.device_name = std::string(trace.text(trace.run().device_name))};
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        tried.memory_bytes =
            std::max<int64_t>(0, trace.devices[Id<profiler::Device>(i)].total_bytes);
    }
    for (std::size_t i = 0; i < trace.sweep_points.size(); ++i) {
        const SweepPoint point = trace.sweep_points[Id<SweepPoint>(i)];
        tried.batches.push_back(
            {.batch_size = point.batch_size, .fits = point.outcome == SweepOutcome::kOk});
    }
    for (std::size_t i = 0; i < trace.sweep_samples.size(); ++i) {
        const auto sample = trace.sweep_samples[Id<profiler::SweepSample>(i)];
        tried.batches[sample.point.index()].step_times_ns.push_back(sample.step_time_ns);
    }
    return tried;
}

profiler::CaptureCallbacks callbacks_of(const profiler::Request& request,
                                        profiler::WorkerServer& server, bool can_take_turns) {
    profiler::CaptureCallbacks callbacks = callbacks_to(server);
    if (!request.takes_turns || !can_take_turns) return callbacks;
    callbacks.wait_for_turn = [&server]() -> profiler::Turn {
        const auto turn =
            server.wait_for_turn({.held_bytes = profiler::resident_memory_bytes(),
                                  .available_bytes = profiler::available_memory_bytes()});
        if (!turn) throw profiler::Cancelled();
        return {.run = turn->run, .recipes = turn->recipes};
    };
    return callbacks;
}

WorkerOutcome try_batches(const profiler::Request& request, const models::Workload& workload,
                          profiler::TrainingDevice& device, profiler::WorkerServer& server) try {
    Trace trace;
    device.sweep(workload,
                 {.memory_limit_bytes = request.memory_limit_bytes,
                  .num_threads = static_cast<int>(request.num_threads)},
                 {.batch_sizes = request.batch_sizes,
                  .warmup_steps = request.warmup_steps,
                  .steps = request.steps},
                 callbacks_of(request, server, device.can_take_turns()), trace);
    return ResultFrame{.path = {}, .summary = to_json(batches_of(trace)), .payload = {}};
} catch (const profiler::Cancelled&) {
    return cancellation("The search was cancelled.");
} catch (const std::exception& error) {
    if (!profiler::is_out_of_memory(error)) {
        return failure("A step of the search failed: " + first_line(error) + ".");
    }
    // Not even the model fits.
    MeasuredBatches tried;
    for (const int64_t batch_size : request.batch_sizes) {
        tried.batches.push_back({.batch_size = batch_size});
    }
    return ResultFrame{.path = {}, .summary = to_json(tried), .payload = {}};
}

}  // namespace

WorkerOutcome run_try_batches(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    if (auto ok = (*device)->validate(*workload); !ok) return failure(ok.error());
    return try_batches(request, *workload, **device, server);
}

}  // namespace app
