#include "profiler/protocol/predict_step_client.h"

#include "profiler/trace/file/trace_bytes.h"

namespace profiler {

tl::expected<Trace, ErrorFrame> request_predicted_step(WorkerClient& worker,
                                                       const PredictStep& step,
                                                       const WorkerEvents& events) {
    Request request;
    request.kind = RequestKind::kPredictStep;
    request.workload = models::to_json(step.workload);
    request.compute_capability = models::to_text(step.capability);
    request.gpu_index = step.gpu_index;
    request.warmup_steps = step.warmup_steps;
    request.records_kernels = step.records_kernels;
    const WorkerOutcome outcome = worker.run(request, events);
    if (!outcome) return tl::unexpected(outcome.error());
    auto trace = trace_from_bytes(outcome->payload);
    if (!trace) return tl::unexpected(ErrorFrame{.message = std::move(trace.error().message)});
    return std::move(*trace);
}

}  // namespace profiler
