#pragma once

#include "models/layers/modules.h"

#include <string>
#include <vector>

namespace models {

/// One layer of a stack, of any family.
class Layer {
public:
    virtual ~Layer() = default;
    virtual Tensor operator()(const Tensor& x,
                              const ForwardContext& context) const = 0;  // [B, S, H]
    /// Its LayerNorms, for refresh_norms.
    virtual std::vector<LayerNormModule*> norms() = 0;
    virtual const std::string& module_path() const = 0;
    virtual Checkpoint checkpoint() const = 0;
};

}  // namespace models
