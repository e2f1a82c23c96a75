#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <vector>

/// The allocator before the first event of a recording, rebuilt from its final state by walking the
/// events backwards: O(E log B) for E events and B blocks.
///
/// A recording holds addresses and requested sizes. It does not hold how much larger than its
/// request a block of the large pool was: a rest of up to 1 MiB stays with the block. For a block
/// that the events free, three rules give the rest:
///
///     | requested |rest| next block        Every block of the large pool is larger than 1 MiB, so
///                                          a gap of at most 1 MiB is the rest.
///     | requested |rest|   free   |        The first block allocated behind it starts where the
///                      ^ true boundary     rest ends.
///     | requested |?       free   |        Otherwise the rest is open, from 0 to max_rest_bytes.
///                                          The replay assumes 0 and corrects it when it must.
namespace profiler {

struct OpenBlock {
    int64_t address = 0;
    int64_t max_rest_bytes = 0;
};

struct StartState {
    std::vector<RecordedSegment> segments;  // as Simulator::load takes them
    std::vector<OpenBlock> open;
};

/// Errors: events and final state contradict each other; the message names the event. This happens
/// if the file was cut at its end, or if other threads allocated while the snapshot was taken.
models::Result<StartState> rebuild_start_state(const AllocatorRecording& recording,
                                               const AllocatorSettings& settings);

}  // namespace profiler
