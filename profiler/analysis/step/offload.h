#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

namespace profiler {

/// What a step moves to the host in forward and back in backward, as save_on_cpu and the offloading
/// of activation checkpoints do.
struct Offload {
    int64_t size_bytes = 0;
    int64_t num_copies = 0;  // out; as many come back
    int64_t copy_ns = 0;     // of all, both ways; 0: not known
};

/// Of the last whole step. A copy to the host in forward counts if backward copies as many bytes
/// to the GPU. O(copies log copies).
Offload offload_of(const Trace& trace);

}  // namespace profiler
