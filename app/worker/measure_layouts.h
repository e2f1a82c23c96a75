#pragma once

#include "profiler/protocol/worker_server.h"

namespace app {

/// Measures the ops of an encoder layer of the request's sizes in every dimension order; the
/// result's summary is a LayoutGraph. For kTimeLayoutRuns it runs whole layers; the summary has
/// `times_ns`, the median of each. Does not throw.
profiler::WorkerOutcome run_measure_layouts(const profiler::Request& request,
                                            profiler::WorkerServer& server);

}  // namespace app
