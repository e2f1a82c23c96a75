#pragma once

#include "profiler/capture/meta/capture.h"
#include "tests/profiler/capture/small_workload.h"

/// MetaTraces of small workloads.
namespace profiler::tests {

inline Trace meta_trace(const models::Workload& workload, const MetaTarget& target = {}) {
    Trace trace;
    capture_on_meta(workload, target, {}, trace);
    return trace;
}

}  // namespace profiler::tests
