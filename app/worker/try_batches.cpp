#include "app/worker/answers.h"
#include "models/config/workload.h"
#include "profiler/protocol/measurements.h"

#include <algorithm>

namespace app {
namespace {

using namespace profiler;

MeasuredBatches batches_of(const Trace& trace) {
    MeasuredBatches tried{.device_name = std::string(trace.text(trace.run().device_name))};
    for (const Id<Device> id : trace.devices.ids()) {
        tried.memory_bytes = std::max<int64_t>(0, trace.devices[id].total_bytes);
    }
    for (const SweepPoint point : trace.sweep_points.rows()) {
        tried.batches.push_back(
            {.batch_size = point.batch_size, .fits = point.outcome == SweepOutcome::kOk});
    }
    for (const SweepSample sample : trace.sweep_samples.rows()) {
        tried.batches[sample.point.index()].step_times_ns.push_back(sample.step_time_ns);
    }
    return tried;
}

CaptureCallbacks callbacks_of(const Request& request, WorkerServer& server, bool can_take_turns) {
    CaptureCallbacks callbacks = callbacks_to(server);
    if (!request.takes_turns || !can_take_turns) return callbacks;
    callbacks.wait_for_turn = [&server] { return wait_for_turn(server); };
    return callbacks;
}

WorkerOutcome try_batches(const Request& request, const models::Workload& workload,
                          TrainingDevice& device, WorkerServer& server) try {
    Trace trace;
    device.sweep(workload,
                 {.memory_limit_bytes = request.memory_limit_bytes,
                  .num_threads = static_cast<int>(request.num_threads)},
                 {.batch_sizes = request.batch_sizes,
                  .warmup_steps = request.warmup_steps,
                  .steps = request.steps},
                 callbacks_of(request, server, device.can_take_turns()), trace);
    return ResultFrame{.path = {}, .summary = to_json(batches_of(trace)), .payload = {}};
} catch (const Cancelled&) {
    return cancellation("The search was cancelled.");
} catch (const std::exception& error) {
    if (!is_out_of_memory(error)) {
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

WorkerOutcome run_try_batches(const Request& request, WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    if (auto ok = (*device)->validate(*workload); !ok) return failure(ok.error());
    return try_batches(request, *workload, **device, server);
}

}  // namespace app
