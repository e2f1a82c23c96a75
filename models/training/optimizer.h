#pragma once

#include "models/config/workload.h"
#include "models/layers/parameters.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace models {

/// Optimizer state: a tensor that lives between steps, "….exp_avg", "….master".
struct OptimizerState {
    std::string name;
    at::Tensor value;
};

/// Updates the parameters from their gradients.
class ParameterOptimizer {
public:
    virtual ~ParameterOptimizer() = default;
    /// `gradients` are in the order of `parameters`, already multiplied by 1 / loss_scale.
    virtual void step(const std::vector<at::Tensor>& gradients) = 0;
    virtual std::vector<OptimizerState> state() const = 0;
};

/// AdamW (Loshchilov and Hutter 2017) or SGD in the variant of the recipe, with fp32 master weights
/// if the precision asks for them. The first step creates the state, as in torch.
std::unique_ptr<ParameterOptimizer> make_optimizer(const Workload& workload,
                                                   const std::vector<Parameter>& parameters);

/// Dynamic loss scaling for fp16 (Micikevicius et al. 2017): the scale doubles after 2000 good
/// steps, and halves after an overflow, which skips the step.
class LossScaler {
public:
    explicit LossScaler(bool enabled) : enabled_(enabled) {}
    double scale() const { return enabled_ ? scale_ : 1.0; }
    /// Divides the gradients by the scale. False if a gradient is not finite: the step is skipped.
    bool unscale(std::vector<at::Tensor>& gradients);

private:
    bool enabled_;
    double scale_ = 65536;
    int64_t good_steps_ = 0;
};

}  // namespace models
