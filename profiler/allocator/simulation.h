#pragma once

#include "profiler/allocator/request_stream.h"
#include "profiler/allocator/simulator.h"

#include <cstdint>
#include <optional>
#include <vector>

/// A whole stream of requests placed by the allocator on a device of its own: where each block
/// lies, when segments come and go, memory over time, and where it runs out.
namespace profiler {

struct SimulationOptions {
    AllocatorSettings settings;
    std::optional<int64_t> memory_limit_bytes;  // on reserved memory; also the device's size
    std::size_t first_measured = 0;             // the request from which on peaks count
    bool keep_placements = false;
    bool keep_curve = false;
};

/// Where an allocation lies; address -1 when it was never made.
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
    std::vector<Placement> placements;         // by allocation, when kept
    std::vector<MemoryUse> curve;              // after each request, when kept
    std::vector<SegmentEvent> segment_events;  // in order
    std::vector<RecordedSegment> segments;     // at the end, with their blocks
    MemoryUse peak;                            // each counter's own maximum
    MemoryUse at_peak;                         // when most was allocated
    std::size_t peak_request = 0;              // after this one
    int64_t num_segments_at_peak = 0;          // then
    int64_t num_retries = 0;                   // of allocations, after everything cached was freed
    std::optional<OutOfMemoryPoint> out_of_memory;  // the stream ends there, as a program would

    /// Share of the reserved memory that was of no use when most was allocated.
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
