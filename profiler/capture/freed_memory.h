#pragma once

/// Keeps memory that a step frees mapped in the process.
///
/// Otherwise page faults would decide comparisons on the CPU. glibc's malloc takes each block over
/// 32 MiB from the system and gives it back, and its memalign cannot reuse a freed block of the
/// same size once something small lies behind it. Writing 128 MiB of attention probabilities then
/// takes ten times as long as the bandwidth allows, and a recipe that orders its blocks differently
/// looks slow. jemalloc, told never to return pages, merges and reuses them. Linking this library
/// makes jemalloc the malloc of the process; its settings are in the .cpp.
namespace profiler {

/// Gives all freed memory back to the system. Call it before asking how much memory is available.
void return_freed_memory();

}  // namespace profiler
