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
/// Where these mark steps or phases (steps_and_phases.h), they become rows, and categories of
/// blocks are inferred. What the recording does not have (ops, modules, saved tensors) stays empty,
/// and a diagnostic says so. Blocks that were live before the first event appear at that event
/// (allocator/start_state.h). The device of main_recording comes first, since analyses look at the
/// first GPU of a trace. A request that was refused is a row of `failure`, and ended the program
/// unless the device served another one after it.
///
/// Times are nanoseconds since the first event, or the number of the event where the recording has
/// no times. The memory of the events is given back as they become rows, so that both together take
/// hardly more than the larger of the two.
/// Errors: the sizes add up to more than a trace may hold.
models::Result<Trace> trace_of(std::vector<AllocatorRecording> devices,
                               std::span<const RecordedAnnotation> annotations = {});

/// The recording whose device ran out of memory at the end, else the one with the most events, then
/// with the most segments. Null when there is none.
const AllocatorRecording* main_recording(std::span<const AllocatorRecording> devices);

/// What the allocators of a trace did, one recording per device that has allocations: the inverse
/// of trace_of. Reading a snapshot of these recordings gives the rows of
/// `allocation`, `storage`, `allocator_event` and `stack` back.
///
/// - A free that a trace counts as one event becomes two, as torch records it: events after it get
///   higher numbers.
/// - Events that `load` added for blocks from before the recording are left out: no snapshot has
///   them, because the final state implies them.
/// - Blocks without an address (of old profiler traces) get one that no device uses.
/// - An allocation without a call stack gets one from its op: a frame is a call (its function) in a
///   module (its file), and the calls around it.
/// - Whether a segment is of the small pool follows from its blocks: those of up to 1 MiB are.
std::vector<AllocatorRecording> recordings_of(const Trace& trace);

/// The steps, phases and annotations of a trace (marked_ranges) as a snapshot has them, by time;
/// none when the trace has no times.
std::vector<RecordedAnnotation> annotations_of(const Trace& trace);

}  // namespace profiler
