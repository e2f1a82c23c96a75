#pragma once

#include "profiler/layouts/layout_graph.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The orders of a whole layer, forward and backward.
namespace profiler {

// The fastest configuration of each op of a pass, when the output of one is the input of the next.
//
//     op             qkv            scores           softmax
//     node   {input}  ─►  {query, key, value, input}  ─►  {scores, value, input}  ─►  ...
//                     edge: a configuration, and the copies that it needs
//
// A node holds the order of every tensor that a later op still reads, so the residual path lies in
// the nodes between its ends. (Substation's graph has no such nodes: it removes an edge of each
// residual instead.) Nodes of equal orders are one node, so the work grows with the number of
// nodes, not of paths. Source: Ivanov et al., section 5, and config_selection/optimize.py of
// spcl/substation.

/// An order for one tensor; kAnyOrder where the search may choose.
inline constexpr int kAnyOrder = -1;

/// What is known before a pass, by tensor of the graph.
struct PassLimits {
    /// In this order the tensor exists before the pass. With kAnyOrder a tensor that the pass reads
    /// and does not write has the order that suits its first reader.
    std::vector<int> given;
    /// In this order the tensor must exist once it is written: the other pass reads it so.
    std::vector<int> required;
    /// The orders that a tensor may have; empty: all of LayoutTensor::orders.
    std::vector<std::vector<uint8_t>> allowed;
    /// A path that takes longer is not looked for. It makes the search faster, and as exact.
    double most_ns = std::numeric_limits<double>::infinity();

    explicit PassLimits(std::size_t num_tensors)
        : given(num_tensors, kAnyOrder), required(num_tensors, kAnyOrder), allowed(num_tensors) {}
};

/// A tensor written once more in another order.
struct LayoutCopy {
    std::size_t tensor = 0;
    uint8_t from = 0, to = 0;
    double time_ns = 0;

    friend bool operator==(const LayoutCopy&, const LayoutCopy&) = default;
};

struct LayoutStep {
    std::size_t op = 0;              // of the graph
    std::size_t configuration = 0;   // of the op
    double time_ns = 0;              // of the op, without the copies
    std::vector<LayoutCopy> copies;  // for this op, or of what it wrote

    double total_ns() const;
};

struct LayoutPath {
    double time_ns = 0;
    std::vector<LayoutStep> steps;  // by op
    std::vector<int> orders;        // by tensor: the first one that it has; kAnyOrder: unused
};

/// The ops [first, last) of a graph.
struct PassOps {
    std::size_t first = 0, last = 0;
};

/// Errors: no path within the limits.
models::Result<LayoutPath> fastest_path(const LayoutGraph& graph, const PassOps& pass,
                                        const PassLimits& limits);

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

// A plan as a program: which op runs in which orders, and what is copied before and after it. The
// worker runs it to measure the layer as a whole.

struct LayoutRunCopy {
    std::string tensor, from, to;

    friend bool operator==(const LayoutRunCopy&, const LayoutRunCopy&) = default;
};

struct LayoutRunStep {
    std::size_t op = 0;                 // of encoder_layer()
    std::vector<std::string> orders;    // of what it reads, then of what it writes
    std::vector<LayoutRunCopy> before;  // of tensors that it reads
    std::vector<LayoutRunCopy> after;   // of tensors that it wrote

    friend bool operator==(const LayoutRunStep&, const LayoutRunStep&) = default;
};
using LayoutRun = std::vector<LayoutRunStep>;

LayoutRun run_of(const LayoutGraph& graph, const LayoutPlan& plan);

nlohmann::json to_json(const LayoutRun& run);
/// Errors: not a run of the encoder layer: an unknown op or tensor, orders of other dimensions.
models::Result<LayoutRun> layout_run_from_json(const nlohmann::json& json);

}  // namespace profiler
