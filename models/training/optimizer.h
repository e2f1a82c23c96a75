#pragma once

#include "models/config/workload.h"
#include "models/layers/parameters.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace models {

/// A tensor that the optimizer keeps between steps: "….exp_avg", "….master".
struct OptimizerState {
    std::string name;
    at::Tensor value;
};

/// Updates the parameters from their gradients.
class ParameterOptimizer {
public:
    virtual ~ParameterOptimizer() = default;
    /// `gradients` line up with `parameters`; they are scaled by 1 / loss_scale already.
    virtual void step(const std::vector<at::Tensor>& gradients) = 0;
    virtual std::vector<OptimizerState> state() const = 0;
};

/// AdamW (Loshchilov and Hutter 2017) or SGD in the variant of the recipe, with fp32 master weights
/// where the precision asks for them. State is made at the first step, as torch does.
std::unique_ptr<ParameterOptimizer> make_optimizer(const Workload& workload,
                                                   const std::vector<Parameter>& parameters);

/// Dynamic loss scaling for 16-bit floating point (Micikevicius et al. 2017): doubles every 2000
/// good steps, halves after an overflow, whose step is skipped.
class LossScaler {
public:
    explicit LossScaler(bool enabled) : enabled_(enabled) {}
    double scale() const { return enabled_ ? scale_ : 1.0; }
    /// Divides the gradients by the scale; false when one is not finite and the step is skipped.
    bool unscale(std::vector<at::Tensor>& gradients);

private:
    bool enabled_;
    double scale_ = 65536;
    int64_t good_steps_ = 0;
};

}  // namespace models
