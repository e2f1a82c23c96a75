#pragma once

#include "profiler/allocator/heap.h"
#include "profiler/allocator/pending_frees.h"

/// How segments go back to the driver: all cached ones, only as many as a request needs, or the
/// oldest.
namespace profiler {

/// release_cached_blocks: the large half of the default pool, then its small half, then private
/// pools that nobody uses any more, small half first. While a capture is under way, only those
/// private pools.
void release_cached_blocks(Heap& heap, PendingFrees& pending);

/// release_available_cached_blocks, only with a finite max_split_size: the smallest oversize block
/// that is large enough, else oversize blocks from the largest down until they suffice. True when
/// they do.
bool release_available_blocks(Heap& heap, const BlockSearch& search);

/// garbage_collect_cached_blocks: releases unsplit segments of the large pool whose age, counted
/// in searches, is at least the average. Passes repeat until reserved memory is below the threshold
/// or a pass released nothing. A pass always runs to its end.
void collect_garbage(Heap& heap);

}  // namespace profiler
