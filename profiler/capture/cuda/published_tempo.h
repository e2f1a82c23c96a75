#pragma once

#include <torch/library.h>

namespace profiler {

/// While it lives, Tempo's ops on CUDA allocate what those of its 2022 release did, and compute
/// nothing: for a virtual GPU.
///
///     LayerNorm backward    x̂ in fp32, two sums a row
///     attention's backward  the dropped probabilities, their gradient, that of the probabilities
///                           and softmax's product live beside that of the scores to its end
///
/// Source   UofT-EcoSystem/Tempo at 17e1a0b: src/inplace_layernorm, src/combined/combined.cpp (its
///          variables live to the end of the function); softmax's product as in SoftMax.cu.
/// The profiler's planner gives their passes (profiler/planner/step/published_tempo.h).
class PublishedTempo {
public:
    PublishedTempo();

private:
    torch::Library tempo_;
};

}  // namespace profiler
