#pragma once

#include <c10/util/FunctionRef.h>
#include <torch/csrc/autograd/variable.h>

/// Tempo's gradients are computed from what forward kept, by ops that autograd does not know. A
/// second derivative taken through them would silently lack their share.
namespace models::ops {

/// The gradients that `run` returns for the autograd node that is being evaluated, as gradients
/// that may be used but not differentiated: under create_graph=True whatever reaches the inputs
/// of `op` or `upstream` through them gets an error that names `op`.
torch::autograd::variable_list once_differentiable(
    const char* op, const torch::autograd::variable_list& upstream,
    c10::function_ref<torch::autograd::variable_list()> run);

}  // namespace models::ops
