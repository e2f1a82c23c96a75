#include "models/ops/once_differentiable.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <memory>
#include <string>

namespace models::ops {

using torch::autograd::edge_list;
using torch::autograd::variable_list;

variable_list once_differentiable(const char* op, const variable_list& upstream,
                                  c10::function_ref<variable_list()> run) {
    // In backward, grad mode tells create_graph=True. A re-entrant backward sets its own grad mode.
    if (!at::GradMode::is_enabled()) return run();
    variable_list gradients;
    {
        const at::NoGradGuard no_graph;
        gradients = run();
    }
    // The error node stands between the gradients and everything that they depend on, where their
    // derivative would be. autograd.grad evaluates only the nodes on a path to its inputs.
    edge_list dependencies = torch::autograd::collect_next_edges(upstream);
    const edge_list& inputs = torch::autograd::get_current_node()->next_edges();
    dependencies.insert(dependencies.end(), inputs.begin(), inputs.end());
    const auto error = std::make_shared<torch::autograd::Error>(
        std::string(op) +
            " has no second derivative; use torch's own op where gradients are differentiated",
        std::move(dependencies));
    for (at::Tensor& gradient : gradients) {
        if (!gradient.defined()) continue;
        gradient = gradient.detach();
        torch::autograd::create_gradient_edge(gradient, error);
    }
    return gradients;
}

}  // namespace models::ops
