#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

namespace profiler {

/// What one of several devices of a trace held.
struct DeviceMemory {
    Id<Device> device;
    int64_t num_allocations = 0;
    int64_t peak_bytes = 0;     // the most requested bytes that lived at one time
    int64_t end_bytes = 0;      // that lived at the end
    int64_t refused_bytes = 0;  // of the last request that its allocator could not serve; 0: none
};

/// Of each device with allocations, or with a failure, in the order of the trace. O(events log
/// events).
std::vector<DeviceMemory> memory_by_device(const Trace& trace);

}  // namespace profiler
