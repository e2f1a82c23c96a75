#pragma once

#include "profiler/allocator/heap.h"

#include <span>

/// Expandable segments: address space is reserved once per half pool and stream, and memory is
/// mapped into it page by page as blocks need it.
///
///     reservation  | allocated |   free   |     unmapped      ...  to 9/8 of the device's memory |
///                  |<- page ->|<- page ->|                     map grows the free block before it
namespace profiler {

/// From `place`, the first block that fits, forward while the next one could grow to less: best
/// fit counts the address space behind a block.
FreeIndex::Place best_expandable_place(const Heap& heap, const FreeIndex& index,
                                       FreeIndex::Place place);

/// try_allocate_expandable_block: a free block of at least the size, taken out of the index, or
/// kNoBlock when the device is full. Memory that was mapped before it was full stays mapped, free.
BlockHandle allocate_expandable(Heap& heap, const BlockSearch& search);

/// Unmaps the whole pages inside a free block; what is left before and after them stays free.
/// Then gives the address space back if nothing in it is mapped any more.
void release_pages(Heap& heap, BlockHandle block);

/// Adds address space from `address` on; nothing in it is mapped yet. Returns its number, which
/// blocks name in Block::reservation.
int32_t add_reservation(Heap& heap, int64_t address, bool is_small);
BlockHandle add_unmapped(Heap& heap, const Block& block);

/// The size of every reservation: one alone can hold the whole device even when it is fragmented.
int64_t reservation_bytes(const Heap& heap, bool is_small);

}  // namespace profiler
