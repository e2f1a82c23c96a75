#pragma once

#include <c10/util/FunctionRef.h>
#include <torch/csrc/autograd/variable.h>

/// Tempo's gradients are computed from saved tensors by ops without autograd. A second derivative
/// through them would lack their share without an error, so it is an error here.
namespace models::ops {

/// Returns the gradients of `run` for the autograd node that is being evaluated. They may be used
/// but not differentiated: under create_graph=True, a derivative that reaches the inputs of `op` or
/// `upstream` through them is an error that names `op`.
torch::autograd::variable_list once_differentiable(
    const char* op, const torch::autograd::variable_list& upstream,
    c10::function_ref<torch::autograd::variable_list()> run);

}  // namespace models::ops
