#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Does what `request` asks for: trains, records and writes a trace, or measures. Sends progress
/// and samples through `server`, and asks it whether the request was cancelled. Does not throw.
profiler::WorkerOutcome answer_request(const profiler::Request& request,
                                       profiler::WorkerServer& server);

}  // namespace app
