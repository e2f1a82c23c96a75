#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <span>

namespace profiler {

/// Turns recordings of caching allocators, one per device, into a trace of source `imported`.
///
/// The trace holds allocations with their call stacks, segments and streams. What the recording
/// does not have (ops, modules, saved tensors, steps) stays empty, and a diagnostic says so. Blocks
/// that were live before the first event appear at that event (allocator/start_state.h). The
/// busiest device comes first, since analyses look at the first GPU of a trace.
///
/// Times are nanoseconds since the first event, or the number of the event where the recording has
/// no times.
/// Errors: the sizes add up to more than a trace may hold.
models::Result<Trace> trace_of(std::span<const AllocatorRecording> devices);

/// The recording with the most events, then with the most segments. Null when there is none.
const AllocatorRecording* busiest_of(std::span<const AllocatorRecording> devices);

}  // namespace profiler
