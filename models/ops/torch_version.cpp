#include "models/ops/torch_version.h"

#include <torch/csrc/autograd/functions/basic_ops.h>

#include <utility>

namespace models::ops {

NodePtr error_node(std::string message, torch::autograd::edge_list dependencies) {
    return std::make_shared<torch::autograd::Error>(std::move(message), std::move(dependencies));
}

}  // namespace models::ops
