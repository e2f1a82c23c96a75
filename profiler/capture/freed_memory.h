#pragma once

/// What becomes of memory that a step frees: it stays in the process, mapped.
///
/// Page faults would otherwise decide CPU comparisons: glibc's malloc takes each block over 32 MiB
/// from the system and gives it back (and its memalign cannot reuse a freed block of the same size
/// once something small lies behind it), so that writing 128 MiB of attention probabilities costs
/// ten times its bandwidth, and a recipe with another order of blocks looks slow. jemalloc, told
/// never to return pages, merges and reuses them. Linking this library makes it the process's
/// malloc; the settings are in the .cpp.
namespace profiler {

/// Gives all freed memory back to the system, before asking how much the machine has available.
void return_freed_memory();

}  // namespace profiler
