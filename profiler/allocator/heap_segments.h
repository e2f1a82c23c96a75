#pragma once

#include "profiler/allocator/heap.h"
#include "profiler/allocator/pending_frees.h"

#include <span>
#include <vector>

/// The heap as the segments of a snapshot, in both directions.
namespace profiler {

/// Fills an empty heap. Expandable segments of one stream and half pool are parts of one
/// reservation, which begins with the first of them; a segment without bytes marks where address
/// space begins that is not mapped. Pending frees are held until a recording completes them.
void load_segments(Heap& heap, PendingFrees& pending, std::span<const RecordedSegment> segments);

/// Segments by address, with their blocks, as a snapshot lists them.
std::vector<RecordedSegment> segments_of(const Heap& heap);

}  // namespace profiler
