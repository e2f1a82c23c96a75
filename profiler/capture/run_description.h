#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>

namespace profiler {

/// Where a run is measured, or for what it is predicted.
struct RunEnvironment {
    Source source = Source::kMeasuredCpu;
    TimeBasis time_basis = TimeBasis::kMeasured;
    std::string device_name;
    int64_t memory_limit_bytes = -1;  // -1: none
    int64_t num_threads = 0;          // of the processor that is measured; 0: none is
};

/// As the system names this machine's processor.
std::string processor_name();

/// Appends the run's row: what is trained, where, with which versions.
void describe_run(const models::Workload& workload, const RunEnvironment& place, Trace& trace);

}  // namespace profiler
