#include "app/worker/calibrate.h"

#include "app/worker/answers.h"
#include "app/worker/training_device.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"

namespace app {
namespace {

using profiler::ResultFrame;
using profiler::WorkerOutcome;

WorkerOutcome measure(profiler::TrainingDevice& device, profiler::WorkerServer& server) try {
    const auto speed = device.measure_speed(callbacks_to(server));
    return ResultFrame{.path = {}, .summary = to_json(speed), .payload = {}};
} catch (const profiler::Cancelled&) {
    return cancellation("The measurement was cancelled; your calibration is as before.");
} catch (const std::exception& error) {
    if (profiler::is_out_of_memory(error)) {
        return failure("The measurement needs memory that " + device.memory_name() +
                       " has not free: end what else uses it.");
    }
    return failure("The measurement failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_calibrate(const profiler::Request& request, profiler::WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    return measure(**device, server);
}

}  // namespace app
