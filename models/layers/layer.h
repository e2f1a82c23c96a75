#pragma once

#include "models/layers/modules.h"

#include <string>

namespace models {

/// One layer of a stack, of any family.
class Layer {
public:
    virtual ~Layer() = default;
    virtual Tensor operator()(const Tensor& x,
                              const ForwardContext& context) const = 0;  // [B, S, H]
    /// Call after each optimizer step: updates decisions that depend on parameter values.
    virtual void refresh() = 0;
    virtual const std::string& module_path() const = 0;
    virtual Checkpoint checkpoint() const = 0;
};

}  // namespace models
