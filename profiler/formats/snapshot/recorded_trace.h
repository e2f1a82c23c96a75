#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace profiler {

/// One end of a range that the profiler marked while the allocator was recorded.
struct RecordedAnnotation {
    std::string name;  // "Optimizer.step#AdamW.step"
    bool is_start = false;
    int64_t device = 0;
    int64_t time_us = -1;  // since 1970
};

/// Turns recordings of caching allocators, one per device, into a trace of source `imported`.
///
/// The trace holds allocations with their call stacks, segments and streams, and the annotations.
/// Where these mark steps or phases (kineto_steps.h), they become rows, and categories of blocks
/// are inferred. What the recording does not have (ops, modules, saved tensors) stays empty, and a
/// diagnostic says so. Blocks
/// that were live before the first event appear at that event (allocator/start_state.h). The
/// busiest device comes first, since analyses look at the first GPU of a trace.
///
/// Times are nanoseconds since the first event, or the number of the event where the recording has
/// no times.
/// The memory of the events is given back as they become rows, so that both together take hardly
/// more than the larger of the two.
/// Errors: the sizes add up to more than a trace may hold.
models::Result<Trace> trace_of(std::vector<AllocatorRecording> devices,
                               std::span<const RecordedAnnotation> annotations = {});

/// The recording with the most events, then with the most segments. Null when there is none.
const AllocatorRecording* busiest_of(std::span<const AllocatorRecording> devices);

}  // namespace profiler
