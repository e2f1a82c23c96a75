#pragma once

#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <vector>

namespace profiler {

/// What the allocators of a trace did, one recording per device that has allocations: the inverse
/// of trace_of (recorded_trace.h). Reading a snapshot of these recordings gives the rows of
/// `allocation`, `storage`, `allocator_event` and `stack` back.
///
/// - What `load` added for blocks from before the recording is left out, as in the snapshot that
///   it came from; the final state implies it.
/// - Blocks without an address (of old profiler traces) get one that no device uses.
/// - An allocation without a call stack gets one from its op: a frame is a call (its function) in a
///   module (its file), and the calls around it.
/// - Whether a segment is of the small pool follows from its blocks: those of up to 1 MiB are.
std::vector<AllocatorRecording> recordings_of(const Trace& trace);

/// The steps, phases and annotations of a trace (marked_ranges.h) as a snapshot has them, by time;
/// none when the trace has no times.
std::vector<RecordedAnnotation> annotations_of(const Trace& trace);

}  // namespace profiler
