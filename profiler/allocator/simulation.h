#pragma once

#include "profiler/allocator/request_stream.h"
#include "profiler/allocator/simulator.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

/// Runs a stream of requests through the allocator, on a device of its own. Tells where each block
/// lies, when segments come and go, the memory over time, and where it runs out.
namespace profiler {

struct SimulationOptions {
    AllocatorSettings settings;
    std::optional<int64_t> memory_limit_bytes;  // of reserved memory; also the size of the device
    /// Begins with what the stream says that the allocator held, where that is possible: under
    /// settings with the same kind of segments, and below the limit. Else with nothing.
    bool from_recorded_start = true;
    std::size_t first_measured = 0;  // peaks count from this request on
    bool keep_placements = false;
    bool keep_curve = false;
    /// Gets the share of the requests that are done, now and then. The simulation ends when it
    /// returns false.
    std::function<bool(double share)> progress;
};

/// Where an allocation lies. Address -1: it was never made.
struct Placement {
    int64_t address = -1;
    int64_t block_bytes = 0;
};

struct SegmentEvent {
    std::size_t request = 0;  // during which it happened
    RecordedEvent event;
};

struct OutOfMemoryPoint {
    std::size_t request = 0;
    OutOfMemory detail;
};

struct Simulation {
    bool from_recorded_start = false;               // else from an empty allocator
    std::vector<Placement> placements;              // by allocation, if kept
    std::vector<MemoryUse> curve;                   // after each request, if kept
    std::vector<SegmentEvent> segment_events;       // in order
    std::vector<RecordedSegment> segments;          // at the end, with their blocks
    MemoryUse peak;                                 // the maximum of each counter
    MemoryUse at_peak;                              // when allocated bytes were highest
    std::size_t peak_request = 0;                   // the request that led to at_peak
    int64_t num_segments_at_peak = 0;               // at that moment
    MemoryUse at_reserved_peak;                     // when reserved bytes were highest
    int64_t num_segments_at_reserved_peak = 0;      // at that moment
    int64_t num_retries = 0;                        // allocations repeated after a release
    std::optional<OutOfMemoryPoint> out_of_memory;  // the simulation ends there

    /// Share of the reserved memory that was not allocated at the peak.
    double fragmentation() const { return fragmentation_of(at_peak); }
    static double fragmentation_of(const MemoryUse& use) {
        return use.reserved_bytes == 0
                   ? 0
                   : static_cast<double>(use.reserved_bytes - use.allocated_bytes) /
                         static_cast<double>(use.reserved_bytes);
    }
};

/// O(requests · log free blocks); tests/bench/allocator_bench.cpp measures it.
Simulation simulate(const RequestStream& stream, const SimulationOptions& options);

}  // namespace profiler
