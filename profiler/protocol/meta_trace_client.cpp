#include "profiler/protocol/meta_trace_client.h"

#include "profiler/trace/trace_bytes.h"

namespace profiler {

tl::expected<Trace, ErrorFrame> request_meta_trace(WorkerClient& worker,
                                                   const models::Workload& workload,
                                                   models::ComputeCapability capability,
                                                   const WorkerEvents& events) {
    Request request;
    request.kind = RequestKind::kMetaTrace;
    request.workload = models::to_json(workload);
    request.compute_capability = models::to_text(capability);
    const WorkerOutcome outcome = worker.run(request, events);
    if (!outcome) return tl::unexpected(outcome.error());
    auto trace = trace_from_bytes(outcome->payload);
    if (!trace) return tl::unexpected(ErrorFrame{.message = std::move(trace.error().message)});
    return std::move(*trace);
}

}  // namespace profiler
