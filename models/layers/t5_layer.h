#pragma once

#include "models/layers/modules.h"

#include <memory>
#include <string>

/// The layers of T5 (Raffel et al. 2019, arXiv 1910.10683) as Hugging Face writes them, without the
/// clamp of fp16: RMSNorm before each sub-layer, linear layers without bias, a relative position
/// bias instead of a scale, ReLU with dropout after it, and in decoders attention to the encoder.
namespace models {

/// A learned bias for each head and each distance between query and key, in 32 buckets: exact up to
/// 8 or 16 tokens, then logarithmic. All layers of a stack share that of the first one.
class RelativePositionBias {
public:
    RelativePositionBias(ParameterStore& store, const Workload& workload);
    Tensor operator()(int64_t seq_len) const;  // [A, S, S]

    /// The bucket of each pair. Decoders look back only: keys after the query are in bucket 0.
    static Tensor buckets(int64_t seq_len, bool is_causal, at::Device device);  // [S, S] int64

private:
    std::string module_path_;
    bool is_causal_;
    Tensor weight_;  // [32, A]
};

/// Needs context.positions; in a decoder also context.encoder_states.
std::unique_ptr<Layer> make_t5_layer(ParameterStore& store, const Workload& workload,
                                     int64_t index);

}  // namespace models
