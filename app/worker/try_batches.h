#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Trains the steps of a workload at the batches of the request, and answers with their times
/// (MeasuredBatches). A batch that does not fit is a result. Writes no file.
profiler::WorkerOutcome run_try_batches(const profiler::Request& request,
                                        profiler::WorkerServer& server);

}  // namespace app
