#include "profiler/layouts/layout_search.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace profiler {
namespace {

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
        return allowed.empty() || std::find(allowed.begin(), allowed.end(), order) != allowed.end();
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
        const auto best =
            std::min_element(last.begin(), last.end(),
                             [](const Node& a, const Node& b) { return a.time_ns < b.time_ns; });
        LayoutPath path{.time_ns = best->time_ns,
                        .orders = std::vector<int>(graph_.tensors.size(), kAnyOrder)};
        auto index = static_cast<std::size_t>(best - last.begin());
        for (std::size_t layer = layers_.size() - 1; layer > 0; --layer) {
            const Node& node = layers_[layer].nodes()[index];
            path.steps.push_back(node.step);
            index = node.from;
        }
        std::reverse(path.steps.begin(), path.steps.end());
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
    std::vector<double> rest_ns_;        // by op: the least time of it and those after it
    std::vector<Layer> layers_;          // the first has one node, before any op
};

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

}  // namespace profiler
