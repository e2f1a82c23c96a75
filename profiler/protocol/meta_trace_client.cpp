#include "profiler/protocol/meta_trace_client.h"

#include "profiler/trace/trace_bytes.h"

namespace profiler {

models::Result<Trace> request_meta_trace(WorkerClient& worker, const models::Workload& workload,
                                         models::ComputeCapability capability,
                                         const WorkerEvents& events) {
    Request request;
    request.kind = RequestKind::kMetaTrace;
    request.workload = models::to_json(workload);
    request.compute_capability = models::to_text(capability);
    const WorkerOutcome outcome = worker.run(request, events);
    if (!outcome) return models::fail("{}", outcome.error().message);
    return trace_from_bytes(outcome->payload);
}

}  // namespace profiler
