#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Answers a `benchmark` request: {device, and what models::to_json(BenchmarkTime) gives}. Memory
/// that does not suffice is a result.
profiler::WorkerOutcome run_benchmark(const profiler::Request& request,
                                      profiler::WorkerServer& server);

}  // namespace app
