#pragma once

#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <span>
#include <vector>

/// What the allocator of a trace held of a device at one moment, and how much of it was of no use.
namespace profiler {

struct SegmentsOfTrace {
    std::vector<RecordedSegment> segments;  // with their blocks, by address
    std::vector<Id<Allocation>> rows;       // of the blocks in use or pending, in the same order
};

/// After the events of `device` with numbers below `event`. Pages of an expandable segment that
/// touch are one segment. Empty when the trace has no addresses of segments.
///
/// A trace does not say which pool a segment is of: it is small if all its requests ever were of up
/// to 1 MiB.
SegmentsOfTrace segments_at(const Trace& trace, Id<Device> device, int64_t event);

/// Memory that the allocator holds and no block uses: "5.19 GiB cached in 31 pieces".
struct CachedPieces {
    int64_t num = 0;
    int64_t total_bytes = 0;
    int64_t largest_bytes = 0;

    friend bool operator==(const CachedPieces&, const CachedPieces&) = default;
};

CachedPieces cached_pieces(std::span<const RecordedSegment> segments);
/// Of the segments at a moment of a trace. All zero when the trace has no addresses of segments.
CachedPieces cached_pieces_at(const Trace& trace, Id<Device> device, int64_t event);

}  // namespace profiler
