#pragma once

#include "profiler/allocator/recorded_segments.h"
#include "profiler/allocator/simulation.h"

#include <cstdint>
#include <optional>
#include <vector>

/// What other settings of the allocator would do: the requests of a program under one choice of
/// settings. The command `replay` and the window both ask here.
namespace profiler {

/// The request at which the program ran out of memory, under other settings.
struct RefusedRequest {
    int64_t requested_bytes = 0;
    bool is_served = false;
    // Behind it, or where memory ran out before:
    std::optional<int64_t> free_bytes;  // below the limit; none: there is no limit
    CachedPieces cached;
};

/// Memory under one choice of settings.
struct SettingsRun {
    AllocatorSettings settings;
    bool from_recorded_start = false;  // else from an empty allocator
    std::optional<int64_t> memory_limit_bytes;
    MemoryUse peak;              // the maximum of each counter
    MemoryUse at_peak;           // when allocated bytes were highest
    MemoryUse at_reserved_peak;  // when reserved bytes were highest
    int64_t num_segments = 0;    // at the peak of allocated bytes
    int64_t num_segments_at_reserved_peak = 0;
    int64_t num_segment_calls = 0;  // cudaMalloc, or cuMemMap of an expandable segment
    int64_t num_retries = 0;
    int64_t num_allocations = 0;  // of the whole stream, to compare allocations_done with
    std::optional<OutOfMemoryPoint> out_of_memory;
    int64_t allocations_done = 0;           // before memory ran out
    std::optional<RefusedRequest> refused;  // none: the stream does not end with such a request

    bool fits() const { return !out_of_memory; }
};

/// Runs the requests, below the recorded limit if the options name none. `simulation` gets the
/// parts that the options keep.
SettingsRun run_settings(const RequestStream& stream, SimulationOptions options,
                         Simulation* simulation = nullptr);

/// Settings that are worth a try for any program, the defaults first. Settings that need a memory
/// limit are left out if there is no limit.
std::vector<AllocatorSettings> settings_to_try(bool has_limit);

}  // namespace profiler
