#pragma once

#include "models/layers/layer.h"

#include <optional>
#include <string>

/// The layers of T5 (Raffel et al. 2019, arXiv 1910.10683) as Hugging Face writes them, without the
/// clamp of fp16: RMSNorm before each sub-layer, linear layers without bias, a relative position
/// bias instead of a scale, ReLU with dropout after it, and in decoders attention to the encoder.
namespace models {

/// Root mean square normalization (T5LayerNorm): y = gamma · x / sqrt(mean(x²) + eps), in fp32 for
/// 16-bit inputs. Backward needs x, in fp32 and as it is, 1/rms and the normalized value.
class RmsNormModule {
public:
    RmsNormModule(ParameterStore& store, const std::string& prefix, std::string module_path,
                  const Workload& workload);
    Tensor operator()(const Tensor& x) const;  // [B, S, H] -> same

private:
    std::string module_path_;
    double eps_;
    Tensor gamma_;  // [H]
};

/// A learned bias for each head and each distance between query and key, in 32 buckets: exact up to
/// 8 or 16 tokens, then logarithmic. All layers of a stack share that of the first one.
class RelativePositionBias {
public:
    RelativePositionBias(ParameterStore& store, const Workload& workload);
    Tensor operator()(int64_t seq_len) const;  // [A, S, S]

    /// The bucket of each pair. Decoders look back only: keys after the query are in bucket 0.
    static Tensor buckets(int64_t seq_len, bool is_decoder, at::Device device);  // [S, S] int64

private:
    std::string module_path_;
    bool is_decoder_;
    Tensor weight_;  // [32, A]
};

/// Attention of the layer's tokens to `states`: the tokens themselves, or the encoder's output.
class T5Attention {
public:
    T5Attention(ParameterStore& store, const std::string& prefix, std::string module_path,
                const Workload& workload, int64_t layer, DropoutSite site);
    /// `bias` [A, S, S] is added to the scores.
    Tensor operator()(const Tensor& x, const Tensor& states, const std::optional<Tensor>& bias,
                      const ForwardContext& context) const;  // [B, S, H] -> same

private:
    Tensor heads(const Tensor& x) const;  // [B, S, H] -> dense [B*A, S, D]
    Tensor softmax(const Tensor& scores) const;

    std::string module_path_;
    int64_t num_heads_;
    Linear query_, key_, value_, output_;
    DropoutModule dropout_;
};

/// One block of T5's encoder or decoder.
class T5Layer final : public Layer {
public:
    T5Layer(ParameterStore& store, const Workload& workload, int64_t index);
    /// Needs context.position_bias; in a decoder also context.encoder_states.
    Tensor operator()(const Tensor& x, const ForwardContext& context) const override;
    std::vector<LayerNormModule*> norms() override { return {}; }
    const std::string& module_path() const override { return module_path_; }
    Checkpoint checkpoint() const override { return checkpoint_; }

private:
    /// Attention to `states` between normalization and residual.
    struct AttentionBlock {
        std::string module_path;
        RmsNormModule norm;
        T5Attention attention;
        DropoutModule dropout;
    };
    AttentionBlock make_attention(ParameterStore& store, const Workload& workload, int64_t index,
                                  bool is_cross) const;
    Tensor attend(const AttentionBlock& block, const Tensor& x,
                  const ForwardContext& context) const;
    Tensor feed_forward(const Tensor& x, const ForwardContext& context) const;

    Checkpoint checkpoint_;
    std::string module_path_;  // "encoder.block.3"
    std::string mlp_path_;     // "layer.1", in a decoder "layer.2"
    AttentionBlock self_attention_;
    std::optional<AttentionBlock> cross_attention_;  // of decoders
    RmsNormModule mlp_norm_;
    Linear up_;
    DropoutModule inner_dropout_;
    Linear down_;
    DropoutModule output_dropout_;
};

}  // namespace models
