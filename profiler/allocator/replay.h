#pragma once

#include "models/config/result.h"
#include "profiler/allocator/simulator.h"
#include "profiler/trace/allocator_recording.h"

#include <cstdint>
#include <string>

/// Replays a recording: does the simulator place every block where torch did?
///
/// The simulator gets requested sizes, streams and frees, never the address of a recorded block.
/// From the recording it also takes what no policy can predict: the addresses of new segments, when
/// events completed, and that the driver was full.
namespace profiler {

struct ReplayReport {
    int64_t events = 0;
    int64_t allocations = 0;
    int64_t address_matches = 0;  // allocations at the recorded address
    int64_t segment_events = 0;   // segment_alloc, _free, _map, _unmap of the recording
    int64_t segment_event_matches =
        0;  // predicted with the same address, size and place in the order
    int64_t extra_segment_events = 0;  // predicted, but not in the recording
    int64_t reserved_mismatches = 0;   // allocations and frees with other reserved bytes
    bool final_state_matches = false;  // segments and blocks, with sizes and states
    MemoryUse peak;                    // the maximum of each counter
    MemoryUse at_peak;                 // when allocated bytes were highest
    int64_t num_segments_at_peak = 0;  // then
    std::string first_difference;      // one sentence, or empty

    double address_match_rate() const {
        return allocations == 0
                   ? 1
                   : static_cast<double>(address_matches) / static_cast<double>(allocations);
    }
    bool is_exact() const {
        return address_matches == allocations && segment_event_matches == segment_events &&
               extra_segment_events == 0 && reserved_mismatches == 0 && final_state_matches;
    }
};

/// Errors: the recording contradicts itself (rebuild_start_state).
models::Result<ReplayReport> replay(const AllocatorRecording& recording,
                                    const AllocatorSettings& settings);

/// The order of the torch that made the recording. If the recording does not tell, torch is 2.12 or
/// older: then up to two replays find the order with which blocks lie where torch placed them.
TieOrder tie_order_of(const AllocatorRecording& recording);

}  // namespace profiler
