#pragma once

#include "profiler/planner/step/op_work.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// The kernels of Tempo's 2022 release for ops that it runs in several kernels, where ours use one.
/// Source: the code of the release (UofT-EcoSystem/Tempo at 17e1a0b). What it allocates is in
/// profiler/capture/cuda/cuda_capture.cpp. With n elements of e bytes:
///
///     LayerNorm backward   x̂ in fp32       n(e+4)      element-wise
///                          row sums         n(e+4)      normalization
///                          dx               n(2e+4)     element-wise
///                          dgamma, dbeta    n(e+4)      column reduction
///     attention            scale            2en         element-wise; mask: once more
///                          softmax          2en         softmax
///                          dropout          n(2e+1)     element-wise
///     its backward         dropout          n(2e+1)     element-wise, beside the recomputation
///                          softmax          3en         softmax
///                          scale            2en         element-wise
///     GELU backward        one kernel, an element a thread, blocks of 64, Horner chains of 12-13
///                          terms in branches that a warp runs one after the other
namespace profiler {

/// What an op works on.
struct PublishedOp {
    int64_t words = 0;
    int64_t word_bytes = 4;
    bool has_mask = false;  // of attention: an additive one
};

/// Appends `work`, or the several kernels of the release.
void append_published(std::string_view op_name, const OpWork& work, const PublishedOp& op,
                      std::vector<OpWork>& ops);

}  // namespace profiler
