#include "profiler/layouts/layout_plan.h"

#include "profiler/layouts/encoder_ops.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace profiler {

// Their fields in JSON.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutRunCopy, tensor, from, to)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutRunStep, op, orders, before, after)

namespace {

using models::Result;
using nlohmann::json;

constexpr int8_t kNone = -1;

/// The order of each tensor that lives; kNone for the others.
using NodeOrders = std::array<int8_t, kMostLayoutTensors>;

struct HashOrders {
    std::size_t operator()(const NodeOrders& orders) const {
        return std::hash<std::string_view>()(
            {reinterpret_cast<const char*>(orders.data()), orders.size()});
    }
};

struct Node {
    NodeOrders orders;
    double time_ns = 0;    // of the fastest path to it
    std::size_t from = 0;  // in the layer before
    LayoutStep step;
};

/// The nodes after one op.
class Layer {
public:
    void offer(Node node) {
        const auto [place, is_new] = index_.try_emplace(node.orders, nodes_.size());
        if (is_new) {
            nodes_.push_back(std::move(node));
        } else if (node.time_ns < nodes_[place->second].time_ns) {
            nodes_[place->second] = std::move(node);
        }
    }
    /// Whether a node of these orders in this time would be kept.
    bool takes(const NodeOrders& orders, double time_ns) const {
        const auto found = index_.find(orders);
        return found == index_.end() || time_ns < nodes_[found->second].time_ns;
    }
    const std::vector<Node>& nodes() const { return nodes_; }

private:
    std::vector<Node> nodes_;
    std::unordered_map<NodeOrders, std::size_t, HashOrders> index_;
};

class PathFinder {
public:
    PathFinder(const LayoutGraph& graph, const PassOps& pass, const PassLimits& limits)
        : graph_(graph), pass_(pass), limits_(limits) {
        last_use_.resize(graph.tensors.size(), 0);
        rest_ns_.resize(graph.ops.size() + 1, 0);
        for (std::size_t i = pass.first; i < pass.last; ++i) {
            for (const std::size_t tensor : graph.ops[i].tensors) last_use_[tensor] = i + 1;
        }
        for (std::size_t i = pass.last; i-- > pass.first;) {
            rest_ns_[i] = rest_ns_[i + 1] + graph.ops[i].best_ns();
        }
    }

    models::Result<LayoutPath> find() {
        Layer first;
        Node start;
        start.orders.fill(kNone);
        first.offer(std::move(start));
        layers_.push_back(std::move(first));
        for (std::size_t op = pass_.first; op < pass_.last; ++op) {
            Layer next;
            for (std::size_t i = 0; i < layers_.back().nodes().size(); ++i) {
                expand(op, i, next);
            }
            if (next.nodes().empty()) {
                return models::fail(
                    "No orders lead through the op '{}' in the time that is allowed.",
                    graph_.ops[op].name);
            }
            layers_.push_back(std::move(next));
        }
        return walk_back();
    }

private:
    bool lives_after(std::size_t tensor, std::size_t op) const {
        return last_use_[tensor] > op + 1;
    }
    bool is_allowed(std::size_t tensor, uint8_t order) const {
        const auto& allowed = limits_.allowed[tensor];
        return allowed.empty() || std::ranges::find(allowed, order) != allowed.end();
    }

    void expand(std::size_t op, std::size_t from, Layer& next) const {
        const std::vector<LayoutConfiguration>& all = graph_.ops[op].configurations;
        for (std::size_t i = 0; i < all.size(); ++i) follow(op, i, from, next);
    }

    /// Adds the nodes to which one configuration leads.
    void follow(std::size_t op, std::size_t configuration, std::size_t from, Layer& next) const {
        const LayoutOp& row = graph_.ops[op];
        const LayoutConfiguration& chosen = row.configurations[configuration];
        const Node& before = layers_.back().nodes()[from];
        if (is_too_slow(op, before.time_ns + chosen.time_ns)) return;
        Node node{.orders = before.orders,
                  .time_ns = before.time_ns + chosen.time_ns,
                  .from = from,
                  .step = {.op = op, .configuration = configuration, .time_ns = chosen.time_ns}};
        for (std::size_t i = 0; i < row.tensors.size(); ++i) {
            const std::size_t tensor = row.tensors[i];
            if (!is_allowed(tensor, chosen.orders[i])) return;
            const bool fits = i < row.num_reads ? read(tensor, chosen.orders[i], node)
                                                : write(tensor, chosen.orders[i], node);
            if (!fits) return;
        }
        offer(op, std::move(node), next);
    }

    /// Whether a path that has taken this time, with this op, cannot end within the limit.
    bool is_too_slow(std::size_t op, double time_ns) const {
        return time_ns + rest_ns_[op + 1] > limits_.most_ns;
    }

    /// The op reads a tensor in `order`. False: that is not possible.
    bool read(std::size_t tensor, uint8_t order, Node& node) const {
        int8_t& has = node.orders[tensor];
        if (has == kNone && limits_.given[tensor] != kAnyOrder) {
            has = static_cast<int8_t>(limits_.given[tensor]);
        }
        if (has == kNone) has = static_cast<int8_t>(order);
        return copy(tensor, static_cast<uint8_t>(has), order, node);
    }

    /// The op writes a tensor in `order`, or a part of one that has it.
    bool write(std::size_t tensor, uint8_t order, Node& node) const {
        int8_t& has = node.orders[tensor];
        if (has == kNone && limits_.given[tensor] != kAnyOrder) {
            has = static_cast<int8_t>(limits_.given[tensor]);
        }
        if (has != kNone) return has == static_cast<int8_t>(order);
        has = static_cast<int8_t>(order);
        const int required = limits_.required[tensor];
        return required == kAnyOrder || copy(tensor, order, static_cast<uint8_t>(required), node);
    }

    bool copy(std::size_t tensor, uint8_t from, uint8_t to, Node& node) const {
        if (from == to) return true;
        const double time_ns = graph_.tensors[tensor].copy_time_ns(from, to);
        if (time_ns < 0) return false;
        node.time_ns += time_ns;
        node.step.copies.push_back({tensor, from, to, time_ns});
        return true;
    }

    /// After a copy both orders exist: later ops go on with one of them.
    void offer(std::size_t op, Node node, Layer& next) const {
        if (is_too_slow(op, node.time_ns)) return;
        for (std::size_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) {
            if (node.orders[tensor] != kNone && !lives_after(tensor, op)) {
                node.orders[tensor] = kNone;
            }
        }
        for (const LayoutCopy& copy : node.step.copies) {
            if (node.orders[copy.tensor] == kNone) continue;
            Node other = node;
            other.orders[copy.tensor] = static_cast<int8_t>(copy.to);
            if (next.takes(other.orders, other.time_ns)) next.offer(std::move(other));
        }
        if (next.takes(node.orders, node.time_ns)) next.offer(std::move(node));
    }

    LayoutPath walk_back() const {
        const std::vector<Node>& last = layers_.back().nodes();
        const auto best = std::ranges::min_element(last, {}, &Node::time_ns);
        LayoutPath path{.time_ns = best->time_ns,
                        .orders = std::vector<int>(graph_.tensors.size(), kAnyOrder)};
        auto index = static_cast<std::size_t>(best - last.begin());
        for (std::size_t layer = layers_.size() - 1; layer > 0; --layer) {
            const Node& node = layers_[layer].nodes()[index];
            path.steps.push_back(node.step);
            index = node.from;
        }
        std::ranges::reverse(path.steps);
        for (const LayoutStep& step : path.steps) note_orders(step, path.orders);
        return path;
    }

    /// The first order of each tensor: before the copies.
    void note_orders(const LayoutStep& step, std::vector<int>& orders) const {
        const LayoutOp& op = graph_.ops[step.op];
        const LayoutConfiguration& chosen = op.configurations[step.configuration];
        for (std::size_t i = 0; i < op.tensors.size(); ++i) {
            int& order = orders[op.tensors[i]];
            if (order == kAnyOrder) order = limits_.given[op.tensors[i]];
            if (order == kAnyOrder) order = chosen.orders[i];
        }
    }

    const LayoutGraph& graph_;
    const PassOps pass_;
    const PassLimits& limits_;
    std::vector<std::size_t> last_use_;  // by tensor: 1 + the last op that uses it
    std::vector<double> rest_ns_;        // by op: the least time of this and all later ops
    std::vector<Layer> layers_;          // the first has one node, before any op
};

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
    /// The orders that every tensor of the chain may have; one empty text if there is no chain.
    std::vector<std::string> chain_orders() const {
        std::optional<std::vector<std::string>> common;
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            const LayoutTensor& tensor = graph_.tensors[i];
            if (tensor.role != LayoutRole::kChain) continue;
            std::vector<std::string> orders;
            for (std::size_t k = 0; k < tensor.orders.size(); ++k) {
                const auto& allowed = limits_.allowed[i];
                const bool may = allowed.empty() || std::ranges::find(allowed, k) != allowed.end();
                if (may) orders.push_back(tensor.orders[k]);
            }
            if (!common) common = orders;
            std::erase_if(*common, [&](const std::string& order) {
                return std::ranges::find(orders, order) == orders.end();
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
        return std::ranges::any_of(graph_.ops, [&](const LayoutOp& op) {
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

/// Throws if `order` is no order of the tensor.
void check_order(const std::string& tensor, const std::string& order) {
    const auto& tensors = encoder_layer().tensors;
    const auto found = std::ranges::find(tensors, tensor, &LayoutTensor::name);
    const bool is_order = found != tensors.end() &&
                          std::is_permutation(order.begin(), order.end(), found->dimensions.begin(),
                                              found->dimensions.end());
    if (!is_order) throw std::invalid_argument("'" + order + "' is no order of " + tensor);
}

void check_step(const LayoutRunStep& step) {
    for (const auto* const copies : {&step.before, &step.after}) {
        for (const LayoutRunCopy& copy : *copies) {
            check_order(copy.tensor, copy.from);
            check_order(copy.tensor, copy.to);
        }
    }
    if (step.op >= encoder_layer().ops.size()) throw std::invalid_argument("an unknown op");
    const EncoderOp& op = encoder_layer().ops[step.op];
    if (step.orders.size() != op.reads.size() + op.writes.size()) {
        throw std::invalid_argument("the number of orders");
    }
    for (std::size_t i = 0; i < step.orders.size(); ++i) {
        const bool reads = i < op.reads.size();
        check_order(reads ? op.reads[i] : op.writes[i - op.reads.size()], step.orders[i]);
    }
}

}  // namespace

double LayoutStep::total_ns() const {
    double total = time_ns;
    for (const LayoutCopy& copy : copies) total += copy.time_ns;
    return total;
}

models::Result<LayoutPath> fastest_path(const LayoutGraph& graph, const PassOps& pass,
                                        const PassLimits& limits) {
    return PathFinder(graph, pass, limits).find();
}

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

LayoutRun run_of(const LayoutGraph& graph, const LayoutPlan& plan) {
    LayoutRun run;
    for (const LayoutStep& step : plan.steps) {
        const LayoutOp& op = graph.ops[step.op];
        LayoutRunStep& row = run.emplace_back(LayoutRunStep{.op = step.op});
        const LayoutConfiguration& chosen = op.configurations[step.configuration];
        for (std::size_t i = 0; i < op.tensors.size(); ++i) {
            row.orders.push_back(graph.tensors[op.tensors[i]].orders[chosen.orders[i]]);
        }
        const auto reads_end = op.tensors.begin() + static_cast<std::ptrdiff_t>(op.num_reads);
        for (const LayoutCopy& copy : step.copies) {
            const LayoutTensor& tensor = graph.tensors[copy.tensor];
            const bool is_read = std::find(op.tensors.begin(), reads_end, copy.tensor) != reads_end;
            (is_read ? row.before : row.after)
                .push_back({tensor.name, tensor.orders[copy.from], tensor.orders[copy.to]});
        }
    }
    return run;
}

json to_json(const LayoutRun& run) { return json(run); }

models::Result<LayoutRun> layout_run_from_json(const json& from) {
    try {
        auto run = from.get<LayoutRun>();
        for (const LayoutRunStep& step : run) check_step(step);
        return run;
    } catch (const std::exception& error) {  // of the JSON library, or of the checks
        return models::fail(
            "The orders to run cannot be read ({}): the program is of another "
            "build.",
            error.what());
    }
}

}  // namespace profiler
