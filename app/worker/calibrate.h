#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Measures the request's device; the result's summary is a DeviceSpeed. Does not throw.
profiler::WorkerOutcome run_calibrate(const profiler::Request& request,
                                      profiler::WorkerServer& server);

}  // namespace app
