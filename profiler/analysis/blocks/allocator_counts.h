#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// How much of the allocator's work a trace holds, on the profiled device.
struct AllocatorCounts {
    int64_t events = 0;  // recorded actions, without those that rebuild the start (kStartState)
    int64_t allocations = 0;  // blocks over the whole trace
    int64_t live_blocks = 0;  // at the end: allocated, or waiting for their free to complete
    int64_t segments = 0;  // at the end; a contiguous mapped range of an expandable one counts once
};

AllocatorCounts count_allocator_rows(const Trace& trace);

}  // namespace profiler
