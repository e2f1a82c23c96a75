#pragma once

#include "models/config/workload.h"
#include "models/layers/parameters.h"
#include "models/ops/tempo_ops.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The small modules that layers consist of. Each enters the module path of its Hugging Face name.
namespace models {

using at::Tensor;

/// The inputs of one forward pass beside its tensors.
struct ForwardContext {
    int64_t step = 0;                           // training iteration; each has other dropout masks
    std::optional<Tensor> additive_mask;        // [B, S]: 0 for a token, else the lowest number
    std::optional<Tensor> causal_mask;          // [S, S]: 0 up to the diagonal, -inf above it
    std::optional<Tensor> positions = {};       // for attention: [A, S, S], the bias of T5
    std::optional<Tensor> encoder_states = {};  // [B, S, H], of T5's decoder
};

using ops::DropoutSite;

class Linear {
public:
    struct Form {
        int64_t num_parts = 1;  // so many layers of one input, side by side in one
        bool has_bias = true;
    };
    Linear(ParameterStore& store, const std::string& prefix, std::string_view module_path,
           int64_t in_features, int64_t out_features, const Form& form);
    Linear(ParameterStore& store, const std::string& prefix, std::string_view module_path,
           int64_t in_features, int64_t out_features)
        : Linear(store, prefix, module_path, in_features, out_features, Form()) {}
    /// [..., in] -> [..., out].
    Tensor operator()(const Tensor& x) const;
    /// x Wᵀ, for an op that adds the bias itself.
    Tensor without_bias(const Tensor& x) const;

    const Tensor& weight() const { return weight_; }
    const Tensor& bias() const { return bias_; }
    const std::string& module_path() const { return module_path_; }

private:
    std::string module_path_;
    Tensor weight_;  // [out, in]
    Tensor bias_;    // [out]; undefined without a bias
};

/// The family's normalization: LayerNorm in the variant of the recipe, or RMSNorm.
class NormModule {
public:
    NormModule(ParameterStore& store, const std::string& prefix, std::string_view module_path,
               const Workload& workload);
    Tensor operator()(const Tensor& x) const;

    /// LayerNorm(residual + dropout(x)) by one op, for recipes with fusion=tempo; with the sum if a
    /// pre-LN layer goes on with it.
    ops::ResidualLayerNorm of_residual(const Tensor& x, const Tensor& residual,
                                       const ops::DropoutSpec& dropout, bool with_sum) const;

    const Tensor& gamma() const { return gamma_; }
    const Tensor& beta() const { return beta_; }
    const std::string& module_path() const { return module_path_; }

private:
    Tensor layer_norm(const Tensor& x) const;
    Tensor rms_norm(const Tensor& x) const;
    friend void refresh_norms(const std::vector<NormModule*>& norms);
    void choose_save(const Tensor& gamma, const Tensor& beta);  // on the CPU

    std::string module_path_;
    std::string name_;
    Norm norm_;
    LayerNorm variant_;
    double eps_;
    kernels::LayerNormSave save_ = kernels::LayerNormSave::kOutput;
    Tensor gamma_;  // [H]
    Tensor beta_;   // [H]; undefined for RMSNorm
};

/// Decides anew, for each norm, whether backward may recover x̂ from the output. Call it once per
/// optimizer step: it reads the parameters, and waits once for those of all norms.
void refresh_norms(const std::vector<NormModule*>& norms);

/// Dropout at one site of one layer. With p = 0 it returns its input.
class DropoutModule {
public:
    DropoutModule(std::string_view module_path, const Workload& workload, double p, int64_t layer,
                  DropoutSite site);
    Tensor operator()(const Tensor& x, const ForwardContext& context) const;

    /// The mask of this site in this step, for ops that apply it themselves.
    ops::DropoutSpec spec(const ForwardContext& context) const;
    double p() const { return p_; }
    const std::string& module_path() const { return module_path_; }

private:
    std::string module_path_;
    double p_;
    Dropout variant_;
    kernels::MaskKind mask_kind_;
    int64_t seed_;
    int64_t layer_;
    DropoutSite site_;
};

/// That of the model's family, in the variant of the recipe.
Tensor activation(const Tensor& x, const Workload& workload);

/// branch + x, in place on `branch` unless autocast made their types differ. `module_path`: the
/// module of the addition; empty: the running module.
Tensor add_residual(Tensor branch, const Tensor& x, std::string_view module_path);

kernels::MaskKind mask_kind(Masks masks);

/// fp32 for 16-bit values, else the type itself.
at::ScalarType wide_type(at::ScalarType type);

/// One layer of a stack, of any family.
class Layer {
public:
    virtual ~Layer() = default;
    virtual Tensor operator()(const Tensor& x,
                              const ForwardContext& context) const = 0;  // [B, S, H]
    /// Its norms, for refresh_norms.
    virtual std::vector<NormModule*> norms() = 0;
    virtual const std::string& module_path() const = 0;
    virtual Checkpoint checkpoint() const = 0;
};

/// The layer of the model's family. `workload.recipe` is the layer's own.
std::unique_ptr<Layer> make_layer(ParameterStore& store, const Workload& workload, int64_t index);

}  // namespace models
