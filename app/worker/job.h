#pragma once

#include "profiler/protocol/worker_server.h"

/// What the worker does for one request.
namespace app {

/// Trains, records and writes what `request` asks for. Progress, samples and the wish to cancel go
/// through `server`. Does not throw.
profiler::WorkerOutcome run_job(const profiler::Request& request, profiler::WorkerServer& server);

}  // namespace app
