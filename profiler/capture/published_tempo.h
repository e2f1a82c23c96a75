#pragma once

#include <c10/core/DispatchKey.h>
#include <torch/library.h>

namespace profiler {

/// While it lives, Tempo's ops of one dispatch key allocate what those of its 2022 release
/// allocated on CUDA, and compute nothing: for the Meta device and for a virtual GPU.
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
    explicit PublishedTempo(c10::DispatchKey key);

private:
    torch::Library tempo_;
};

}  // namespace profiler
