#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

namespace profiler {

/// Appends the run's row: what is trained, on which machine, with which versions.
void describe_run(const models::Workload& workload, int64_t memory_limit_bytes, Trace& trace);

}  // namespace profiler
