#include "models/ops/torch_version.h"

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/version.h>

#include <memory>
#include <utility>

namespace models::ops {

NodePtr error_node(std::string message, torch::autograd::edge_list dependencies) {
    using torch::autograd::Error;
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 213
    return c10::make_intrusive<Error>(std::move(message), std::move(dependencies));
#else
    return std::make_shared<Error>(std::move(message), std::move(dependencies));
#endif
}

}  // namespace models::ops
