#pragma once

#include <torch/library.h>

namespace profiler {

/// While it lives, Tempo's ops on CUDA allocate what those of its 2022 release allocated, and
/// compute nothing: for a virtual GPU.
///
///     LayerNorm backward    x̂ in fp32, two sums a row
///     attention's backward  to its end: the dropped probabilities, three gradients (of the
///                           probabilities before and after dropout, of the scores), and
///                           softmax's product
///
/// Source   UofT-EcoSystem/Tempo at 17e1a0b: src/inplace_layernorm, src/combined/combined.cpp (its
///          variables live to the end of the function); softmax's product as torch's own softmax.
/// The profiler's planner gives their passes (profiler/planner/step/published_tempo.h).
class PublishedTempo {
public:
    PublishedTempo();

private:
    torch::Library tempo_;
};

}  // namespace profiler
