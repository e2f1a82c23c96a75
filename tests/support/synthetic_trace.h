#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>

/// Makes traces of any size that look like training, for tests and benchmarks. The same options
/// give the same trace.
namespace tests {

struct SyntheticTraceOptions {
    int64_t num_allocations = 10'000;  // exact; the last step ends at this number
    int64_t num_layers = 24;
    int64_t batch_size = 8;
    int64_t seq_len = 512;
    int64_t hidden_size = 1024;
    int64_t num_heads = 16;
    bool in_place = false;  // save the tensors that Tempo's ops save, not the original ones
};

/// Trains encoder layers step after step. The trace has parameters and optimizer state that stay
/// live, activations saved for backward, temporaries and gradients. Every id is set as in a
/// capture, addresses of live blocks do not overlap, and the run is complete.
profiler::Trace make_synthetic_trace(const SyntheticTraceOptions& options);

}  // namespace tests
