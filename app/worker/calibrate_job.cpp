#include "app/worker/calibrate_job.h"

#include "app/worker/training_device.h"
#include "profiler/capture/out_of_memory.h"

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

WorkerOutcome measure(TrainingDevice& device, profiler::WorkerServer& server) try {
    const auto speed = device.measure_speed(
        {.progress =
             [&](std::string_view stage, int64_t done, int64_t total) {
                 server.send(profiler::Progress{std::string(stage), done, total});
             },
         .phase_begun = {},
         .step_done = {},
         .cancelled = [&] { return server.cancelled(); }});
    return ResultFrame{.path = {}, .summary = to_json(speed), .payload = {}};
} catch (const profiler::Cancelled&) {
    return tl::unexpected(
        ErrorFrame{.message = "The measurement was cancelled; your calibration is as before.",
                   .cancelled = true});
} catch (const std::exception& error) {
    if (profiler::is_out_of_memory(error)) {
        return failure("The measurement needs memory that " + device.memory_name() +
                       " has not free: end what else uses it.");
    }
    const auto* const torch = dynamic_cast<const c10::Error*>(&error);
    const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
    return failure("The measurement failed: " + text.substr(0, text.find('\n')) + ".");
}

}  // namespace

WorkerOutcome run_calibrate(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error().message);
    return measure(**device, server);
}

}  // namespace app
