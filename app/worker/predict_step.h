#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Traces a step of the request's workload on this process's virtual GPU; the result's payload is
/// the trace. Does not throw.
profiler::WorkerOutcome run_predict_step(const profiler::Request& request,
                                         profiler::WorkerServer& server);

}  // namespace app
