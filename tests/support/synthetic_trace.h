#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

/// Traces of any size that look like training, for tests and benchmarks. Deterministic.
namespace tests {

struct SyntheticTraceOptions {
    int64_t num_allocations = 10'000;  // exactly; the last step ends where they are used up
    int64_t num_layers = 24;
    int64_t batch_size = 8;
    int64_t seq_len = 512;
    int64_t hidden_size = 1024;
    int64_t num_heads = 16;
    bool in_place = false;  // the saved tensors of Tempo's ops instead of the original ones
};

/// Encoder layers trained step after step: parameters and optimizer state that stay, activations
/// kept from forward to backward, temporaries, gradients. Every id is set as a capture sets it,
/// addresses of live blocks do not overlap, and the run is complete.
profiler::Trace make_synthetic_trace(const SyntheticTraceOptions& options);

}  // namespace tests
