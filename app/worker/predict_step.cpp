#include "app/worker/answers.h"
#include "models/config/validity.h"
#include "models/config/workload.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/trace/file/trace_bytes.h"

#include <cstdlib>
#include <new>

namespace app {
namespace {

using namespace profiler;

WorkerOutcome predict_step(const models::Workload& workload, const PredictedStepOptions& options,
                           WorkerServer& server) try {
    if (std::getenv(kVirtualGpuVariable) == nullptr) {
        return failure("Steps are predicted on a virtual GPU, and this worker has none.");
    }
    const auto cuda = find_cuda();
    if (!cuda) return failure(cuda.error());
    Trace trace;
    (*cuda)->predict_step(workload, options, callbacks_to(server), trace);
    return ResultFrame{.path = {}, .summary = {}, .payload = to_bytes(trace)};
} catch (const Cancelled&) {
    return cancellation("The prediction was cancelled.");
} catch (const std::bad_alloc&) {
    return failure(
        "There is not enough memory on this machine to predict the step: choose fewer layers, "
        "close other programs, or raise the limit on memory (ulimit -v).",
        ExitCode::kOutOfMemory);
} catch (const c10::OutOfMemoryError&) {
    return failure(
        models::Error{.message = "The step needs more memory than any GPU has: choose a smaller "
                                 "batch, fewer layers or a shorter sequence.",
                      .fields = {"batch_size"}},
        ExitCode::kOutOfMemory);
} catch (const c10::Error& error) {
    return failure("torch refused the step: " + first_line(error) + ".");
} catch (const std::exception& error) {
    return failure("The prediction failed: " + first_line(error) + ".");
}

}  // namespace

WorkerOutcome run_predict_step(const Request& request, WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    const auto capability = models::parse_compute_capability(request.compute_capability);
    if (!capability) return failure(capability.error());
    if (auto ok = models::validate_for_prediction(*workload, *capability); !ok) {
        return failure(ok.error());
    }
    return predict_step(*workload,
                        {.gpu_index = request.gpu_index,
                         .warmup_steps = request.warmup_steps,
                         .records_kernels = request.records_kernels},
                        server);
}

}  // namespace app
