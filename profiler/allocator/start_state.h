#pragma once

#include "models/config/result.h"
#include "profiler/allocator/settings.h"
#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <vector>

/// The allocator before the first event of a recording, rebuilt from its last state by walking the
/// events backwards: O(E log B).
///
/// Freed addresses and sizes asked for are recorded; how much larger a block of the large pool was
/// than its request is not, since a rest of up to 1 MiB stays with the block. For blocks that the
/// events free, three facts narrow it down:
///
///     | requested |rest| next block        every block of the large pool is larger than 1 MiB, so
///                                          a gap of at most 1 MiB is the rest;
///     | requested |rest|   free   |        the first block allocated behind it starts where the
///                      ^ true boundary     rest ends;
///     | requested |?       free   |        else the rest is open, within 0 ... max_rest_bytes: the
///                                          replay takes 0 and corrects it when it must.
namespace profiler {

struct OpenBlock {
    int64_t address = 0;
    int64_t max_rest_bytes = 0;
};

struct StartState {
    std::vector<RecordedSegment> segments;  // as Simulator::load takes them
    std::vector<OpenBlock> open;
};

/// Errors: events and final state contradict each other (another process's file, a file that was
/// cut at its end, a snapshot that was taken while other threads allocated): which event, and how.
models::Result<StartState> rebuild_start_state(const AllocatorRecording& recording,
                                               const AllocatorSettings& settings);

}  // namespace profiler
