#pragma once

#include "profiler/layouts/layout_search.h"

#include <limits>
#include <string>
#include <vector>

/// The orders of a whole layer, forward and backward.
namespace profiler {

/// Which pass is searched first. The other one then finds the tensors that both use in the orders
/// of the first: Substation's `--graph_order fp_first` and `bp_first`.
enum class PassOrder : uint8_t { kForwardFirst, kBackwardFirst };

struct LayoutPlan {
    std::vector<LayoutStep> steps;  // by op of the graph
    std::vector<int> orders;        // by tensor: the first order that it has
    double time_ns = 0;
    PassOrder pass_order = PassOrder::kForwardFirst;

    double copies_ns() const;
};

/// The fastest plan of both pass orders and of every order of the layer's input. The layer's input,
/// output and their gradients have one order, so that layers chain. A weight and its gradient have
/// one order. A tensor of forward that backward reads is copied where the passes want it otherwise.
/// Errors: no plan within the limits.
struct PlanLimits {
    /// By tensor the orders that it may have; empty: any.
    std::vector<std::vector<std::string>> allowed = {};
    /// Only a plan that is faster is looked for, which makes the search faster.
    double most_ns = std::numeric_limits<double>::infinity();
};
models::Result<LayoutPlan> plan_layouts(const LayoutGraph& graph, const PlanLimits& limits = {});

/// The sum of the fastest configuration of each op, whatever the orders of the others: no plan is
/// faster.
double layout_free_ns(const LayoutGraph& graph);

}  // namespace profiler
