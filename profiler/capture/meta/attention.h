#pragma once

#include <torch/library.h>

namespace profiler {

/// Adds to torch's Meta device the fused attention ops, forward and backward, with the outputs,
/// types and scratch of CUDA's kernels.
void register_meta_attention(torch::Library& aten);

}  // namespace profiler
