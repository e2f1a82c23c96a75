#pragma once

#include "models/layers/modules.h"

#include <memory>
#include <string>
#include <vector>

namespace models {

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
