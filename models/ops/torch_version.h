#pragma once

#include <torch/csrc/autograd/function.h>

#include <string>

/// What differs between versions of torch, for the ops. The recorder has
/// profiler/capture/torch_adapter for it.
namespace models::ops {

/// A node of autograd's graph: counted by std::shared_ptr, and by itself since torch 2.13.
using NodePtr = decltype(torch::autograd::Edge::function);

/// A node that fails with `message` when its derivative is asked for.
NodePtr error_node(std::string message, torch::autograd::edge_list dependencies);

}  // namespace models::ops
