#pragma once

#include "profiler/trace/trace.h"

/// What readers say of files that hold less than a capture does.
namespace profiler {

/// Whether a trace holds an allocator's actions and no ops, as a memory snapshot does.
bool is_memory_only(const Trace& trace);

/// Notes that a trace has memory but no ops (kAllocationsOnly), and what follows from that.
void note_allocations_only(Trace& trace);

/// Notes that there are other devices with memory, and how to choose one.
void note_other_devices(Trace& trace);

}  // namespace profiler
