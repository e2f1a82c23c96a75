#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <string>

/// What differs between versions of torch, for the ops. The recorder has
/// profiler/capture/torch_adapter for it.
namespace models::ops {

/// A node of autograd, as edges hold it.
using NodePtr = std::shared_ptr<torch::autograd::Node>;

/// A node that fails with `message` when its derivative is asked for.
NodePtr error_node(std::string message, torch::autograd::edge_list dependencies);

}  // namespace models::ops
