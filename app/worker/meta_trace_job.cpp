#include "app/worker/meta_trace_job.h"

#include "models/config/cuda_support.h"
#include "models/config/workload.h"
#include "profiler/capture/meta_capture.h"
#include "profiler/trace/trace_bytes.h"

#include <c10/util/Exception.h>

#include <string>

namespace app {
namespace {

using profiler::ErrorFrame;
using profiler::ResultFrame;
using profiler::WorkerOutcome;

tl::unexpected<ErrorFrame> failure(std::string message) {
    return tl::unexpected(ErrorFrame{.message = std::move(message)});
}

WorkerOutcome trace_on_meta(const models::Workload& workload, const profiler::MetaTarget& target,
                            profiler::WorkerServer& server) try {
    profiler::Trace trace;
    profiler::capture_on_meta(
        workload, target,
        {.progress =
             [&](std::string_view stage, int64_t done, int64_t total) {
                 server.send(profiler::Progress{std::string(stage), done, total});
             },
         .phase_begun = {},
         .step_done = {},
         .cancelled = [&] { return server.cancelled(); }},
        trace);
    return ResultFrame{.path = {}, .summary = {}, .payload = profiler::to_bytes(trace)};
} catch (const profiler::Cancelled&) {
    return tl::unexpected(
        ErrorFrame{.message = "The prediction was cancelled.", .exit_code = 1, .cancelled = true});
} catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return failure("torch refused the step: " + text.substr(0, text.find('\n')) + ".");
} catch (const std::exception& error) {
    return failure(std::string("The prediction failed: ") + error.what() + ".");
}

}  // namespace

WorkerOutcome run_meta_trace(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error().message);
    const auto capability = models::parse_compute_capability(request.compute_capability);
    if (!capability) return failure(capability.error().message);
    if (auto ok = models::validate_for_cuda(*workload, *capability); !ok) {
        return failure(ok.error().message);
    }
    return trace_on_meta(*workload, {.capability = *capability}, server);
}

}  // namespace app
