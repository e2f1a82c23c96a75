#include "app/worker/meta_trace.h"

#include "app/worker/answers.h"
#include "models/config/validity.h"
#include "models/config/workload.h"
#include "profiler/capture/meta/capture.h"
#include "profiler/trace/trace_bytes.h"

namespace app {
namespace {

using profiler::ResultFrame;
using profiler::WorkerOutcome;

WorkerOutcome trace_on_meta(const models::Workload& workload, const profiler::MetaTarget& target,
                            profiler::WorkerServer& server) try {
    profiler::Trace trace;
    profiler::capture_on_meta(workload, target, callbacks_to(server), trace);
    return ResultFrame{.path = {}, .summary = {}, .payload = profiler::to_bytes(trace)};
} catch (const profiler::Cancelled&) {
    return cancellation("The prediction was cancelled.");
} catch (const c10::Error& error) {
    return failure("torch refused the step: " + first_line(error) + ".");
} catch (const std::exception& error) {
    return failure("The prediction failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_meta_trace(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    const auto capability = models::parse_compute_capability(request.compute_capability);
    if (!capability) return failure(capability.error());
    if (auto ok = models::validate_for_prediction(*workload, *capability); !ok) {
        return failure(ok.error());
    }
    return trace_on_meta(*workload, {.capability = *capability}, server);
}

}  // namespace app
