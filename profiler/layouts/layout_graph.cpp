#include "profiler/layouts/layout_graph.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace profiler {

// Their fields in JSON.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutTensor, name, dimensions, role, orders, copy_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutConfiguration, orders, time_ns)

namespace {

using nlohmann::json;

/// What a search relies on.
void require(bool is_right, const char* what) {
    if (!is_right) throw std::invalid_argument(what);
}

bool is_time(double ns) { return std::isfinite(ns) && ns >= 0; }

void check(const LayoutTensor& tensor) {
    require(tensor.role <= LayoutRole::kOther, "an unknown role");
    const std::size_t count = tensor.orders.size();
    require(count > 0 && count < 128, "the number of orders");
    require(tensor.copy_ns.empty() || tensor.copy_ns.size() == count * count, "the copies");
    for (const double ns : tensor.copy_ns) require(std::isfinite(ns), "the time of a copy");
}

json op_json(const LayoutOp& op) {
    return {{"name", op.name},
            {"class", static_cast<int>(op.op_class)},
            {"is_backward", op.is_backward},
            {"tensors", op.tensors},
            {"num_reads", op.num_reads},
            {"configurations", op.configurations}};
}

LayoutOp op_from(const json& from, const std::vector<LayoutTensor>& tensors) {
    LayoutOp op{.name = from.at("name"),
                .op_class = static_cast<OpClass>(from.at("class").get<int>()),
                .is_backward = from.at("is_backward"),
                .tensors = from.at("tensors"),
                .num_reads = from.at("num_reads"),
                .configurations = from.at("configurations")};
    require(op.op_class <= OpClass::kOther, "an unknown class");
    require(op.num_reads <= op.tensors.size(), "the number of tensors read");
    for (const std::size_t tensor : op.tensors) require(tensor < tensors.size(), "a tensor");
    for (const LayoutConfiguration& configuration : op.configurations) {
        require(is_time(configuration.time_ns), "a time");
        require(configuration.orders.size() == op.tensors.size(), "the orders of an op");
        for (std::size_t i = 0; i < op.tensors.size(); ++i) {
            require(configuration.orders[i] < tensors[op.tensors[i]].orders.size(), "an order");
        }
    }
    require(!op.configurations.empty(), "an op without configurations");
    return op;
}

}  // namespace

double LayoutTensor::copy_time_ns(std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    return copy_ns.empty() ? -1 : copy_ns[from * orders.size() + to];
}

std::size_t LayoutTensor::find(const std::string& order) const {
    return static_cast<std::size_t>(std::ranges::find(orders, order) - orders.begin());
}

double LayoutOp::best_ns() const {
    return std::ranges::min_element(configurations, {}, &LayoutConfiguration::time_ns)->time_ns;
}

json to_json(const LayoutGraph& graph) {
    json ops = json::array();
    for (const LayoutOp& op : graph.ops) ops.push_back(op_json(op));
    return {{"device_name", graph.device_name},
            {"rounds", graph.num_rounds},
            {"tensors", graph.tensors},
            {"ops", std::move(ops)}};
}

models::Result<LayoutGraph> layout_graph_from_json(const json& from) {
    try {
        LayoutGraph graph{.device_name = from.at("device_name"),
                          .num_rounds = from.at("rounds"),
                          .tensors = from.at("tensors")};
        for (const LayoutTensor& tensor : graph.tensors) check(tensor);
        require(graph.tensors.size() <= kMostLayoutTensors, "the number of tensors");
        for (const json& op : from.at("ops")) graph.ops.push_back(op_from(op, graph.tensors));
        return graph;
    } catch (const std::exception& error) {  // of the JSON library, or of require
        return models::fail("The worker's times of the layouts cannot be read: {}.", error.what());
    }
}

}  // namespace profiler
