#include "profiler/layouts/layout_plan.h"

#include <algorithm>
#include <optional>

namespace profiler {
namespace {

using models::Result;

class Planner {
public:
    Planner(const LayoutGraph& graph, const PlanLimits& limits)
        : graph_(graph), limits_(graph.tensors.size()), most_ns_(limits.most_ns) {
        for (std::size_t i = 0; i < limits.allowed.size(); ++i) {
            for (const std::string& order : limits.allowed[i]) {
                const std::size_t place = graph.tensors[i].find(order);
                if (place < graph.tensors[i].orders.size()) {
                    limits_.allowed[i].push_back(static_cast<uint8_t>(place));
                }
            }
        }
        while (num_forward_ < graph.ops.size() && !graph.ops[num_forward_].is_backward) {
            ++num_forward_;
        }
    }

    Result<LayoutPlan> find() {
        std::optional<LayoutPlan> best;
        std::optional<models::Error> error;
        for (const std::string& order : chain_orders()) {
            for (const PassOrder pass_order :
                 {PassOrder::kForwardFirst, PassOrder::kBackwardFirst}) {
                auto plan = plan_with(order, pass_order);
                if (!plan) {
                    error = plan.error();
                } else if (!best || plan->time_ns < best->time_ns) {
                    best = std::move(*plan);
                    most_ns_ = std::min(most_ns_, best->time_ns);
                }
            }
        }
        if (best) return std::move(*best);
        return tl::unexpected(error.value_or(models::Error{"The graph has no ops."}));
    }

private:
    /// Those that every tensor of the chain may have; one empty text if there is no chain.
    std::vector<std::string> chain_orders() const {
        std::optional<std::vector<std::string>> common;
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            const LayoutTensor& tensor = graph_.tensors[i];
            if (tensor.role != LayoutRole::kChain) continue;
            std::vector<std::string> orders;
            for (std::size_t k = 0; k < tensor.orders.size(); ++k) {
                const auto& allowed = limits_.allowed[i];
                const bool may = allowed.empty() ||
                                 std::find(allowed.begin(), allowed.end(), k) != allowed.end();
                if (may) orders.push_back(tensor.orders[k]);
            }
            if (!common) common = orders;
            std::erase_if(*common, [&](const std::string& order) {
                return std::find(orders.begin(), orders.end(), order) == orders.end();
            });
        }
        return common.value_or(std::vector<std::string>{""});
    }

    PassLimits with_chain(const std::string& order) const {
        PassLimits limits = limits_;
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            if (graph_.tensors[i].role != LayoutRole::kChain) continue;
            const auto place = static_cast<int>(graph_.tensors[i].find(order));
            limits.required[i] = place;
            if (!is_written(i)) limits.given[i] = place;
        }
        return limits;
    }

    bool is_written(std::size_t tensor) const {
        return std::any_of(graph_.ops.begin(), graph_.ops.end(), [&](const LayoutOp& op) {
            const auto begin = op.tensors.begin() + static_cast<std::ptrdiff_t>(op.num_reads);
            return std::find(begin, op.tensors.end(), tensor) != op.tensors.end();
        });
    }

    Result<LayoutPlan> plan_with(const std::string& chain, PassOrder pass_order) const {
        const PassOps forward{0, num_forward_}, backward{num_forward_, graph_.ops.size()};
        const bool forward_first = pass_order == PassOrder::kForwardFirst;
        PassLimits limits = with_chain(chain);
        limits.most_ns = most_ns_ - least_ns(forward_first ? backward : forward);
        const auto first = fastest_path(graph_, forward_first ? forward : backward, limits);
        if (!first) return tl::unexpected(first.error());
        PassLimits rest = limits;
        rest.most_ns = most_ns_ - first->time_ns;
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            if (first->orders[i] == kAnyOrder) continue;
            // Backward finds what forward wrote. Forward must write what backward read.
            const bool exists = forward_first || graph_.tensors[i].role == LayoutRole::kWeight;
            (exists ? rest.given : rest.required)[i] = settled_order(*first, i);
        }
        const auto second = fastest_path(graph_, forward_first ? backward : forward, rest);
        if (!second) return tl::unexpected(second.error());
        return joined(forward_first ? *first : *second, forward_first ? *second : *first,
                      pass_order);
    }

    double least_ns(const PassOps& pass) const {
        double total = 0;
        for (std::size_t i = pass.first; i < pass.last; ++i) total += graph_.ops[i].best_ns();
        return total;
    }

    /// The order in which a tensor is left: after a copy that its own requirement asked for.
    int settled_order(const LayoutPath& path, std::size_t tensor) const {
        int order = path.orders[tensor];
        for (const LayoutStep& step : path.steps) {
            const LayoutOp& op = graph_.ops[step.op];
            for (const LayoutCopy& copy : step.copies) {
                const auto begin = op.tensors.begin() + static_cast<std::ptrdiff_t>(op.num_reads);
                const bool is_output =
                    std::find(begin, op.tensors.end(), tensor) != op.tensors.end();
                if (copy.tensor == tensor && is_output) order = copy.to;
            }
        }
        return order;
    }

    static LayoutPlan joined(const LayoutPath& forward, const LayoutPath& backward,
                             PassOrder pass_order) {
        LayoutPlan plan{.steps = forward.steps,
                        .orders = forward.orders,
                        .time_ns = forward.time_ns + backward.time_ns,
                        .pass_order = pass_order};
        plan.steps.insert(plan.steps.end(), backward.steps.begin(), backward.steps.end());
        for (std::size_t i = 0; i < plan.orders.size(); ++i) {
            if (plan.orders[i] == kAnyOrder) plan.orders[i] = backward.orders[i];
        }
        return plan;
    }

    const LayoutGraph& graph_;
    PassLimits limits_;
    double most_ns_;
    std::size_t num_forward_ = 0;
};

}  // namespace

double LayoutPlan::copies_ns() const {
    double total = 0;
    for (const LayoutStep& step : steps) total += step.total_ns() - step.time_ns;
    return total;
}

Result<LayoutPlan> plan_layouts(const LayoutGraph& graph, const PlanLimits& limits) {
    return Planner(graph, limits).find();
}

double layout_free_ns(const LayoutGraph& graph) {
    double total = 0;
    for (const LayoutOp& op : graph.ops) total += op.best_ns();
    return total;
}

}  // namespace profiler
