#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Runs the request's workload on Meta; the result's payload is the MetaTrace. Does not throw.
profiler::WorkerOutcome run_meta_trace(const profiler::Request& request,
                                       profiler::WorkerServer& server);

}  // namespace app
