#include "profiler/layouts/layout_graph.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace profiler {
namespace {

using nlohmann::json;

/// What a search relies on.
void require(bool is_right, const char* what) {
    if (!is_right) throw std::invalid_argument(what);
}

bool is_time(double ns) { return std::isfinite(ns) && ns >= 0; }

json tensor_json(const LayoutTensor& tensor) {
    return {{"name", tensor.name},
            {"dimensions", tensor.dimensions},
            {"role", static_cast<int>(tensor.role)},
            {"orders", tensor.orders},
            {"copy_ns", tensor.copy_ns}};
}

LayoutTensor tensor_from(const json& from) {
    LayoutTensor tensor{.name = from.at("name"),
                        .dimensions = from.at("dimensions"),
                        .role = static_cast<LayoutRole>(from.at("role").get<int>()),
                        .orders = from.at("orders"),
                        .copy_ns = from.at("copy_ns")};
    require(tensor.role <= LayoutRole::kOther, "an unknown role");
    const std::size_t count = tensor.orders.size();
    require(count > 0 && count < 128, "the number of orders");
    require(tensor.copy_ns.empty() || tensor.copy_ns.size() == count * count, "the copies");
    for (const double ns : tensor.copy_ns) require(std::isfinite(ns), "the time of a copy");
    return tensor;
}

json op_json(const LayoutOp& op) {
    json configurations = json::array();
    for (const LayoutConfiguration& one : op.configurations) {
        configurations.push_back({{"orders", one.orders}, {"time_ns", one.time_ns}});
    }
    return {{"name", op.name},
            {"class", static_cast<int>(op.op_class)},
            {"is_backward", op.is_backward},
            {"tensors", op.tensors},
            {"num_reads", op.num_reads},
            {"configurations", std::move(configurations)}};
}

LayoutOp op_from(const json& from, const std::vector<LayoutTensor>& tensors) {
    LayoutOp op{.name = from.at("name"),
                .op_class = static_cast<OpClass>(from.at("class").get<int>()),
                .is_backward = from.at("is_backward"),
                .tensors = from.at("tensors"),
                .num_reads = from.at("num_reads")};
    require(op.op_class <= OpClass::kOther, "an unknown class");
    require(op.num_reads <= op.tensors.size(), "the number of tensors read");
    for (const std::size_t tensor : op.tensors) require(tensor < tensors.size(), "a tensor");
    for (const json& one : from.at("configurations")) {
        LayoutConfiguration configuration{.orders = one.at("orders"), .time_ns = one.at("time_ns")};
        require(is_time(configuration.time_ns), "a time");
        require(configuration.orders.size() == op.tensors.size(), "the orders of an op");
        for (std::size_t i = 0; i < op.tensors.size(); ++i) {
            require(configuration.orders[i] < tensors[op.tensors[i]].orders.size(), "an order");
        }
        op.configurations.push_back(std::move(configuration));
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
    return std::ranges::min_element(
               configurations, [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; })
        ->time_ns;
}

json to_json(const LayoutGraph& graph) {
    json tensors = json::array(), ops = json::array();
    for (const LayoutTensor& tensor : graph.tensors) tensors.push_back(tensor_json(tensor));
    for (const LayoutOp& op : graph.ops) ops.push_back(op_json(op));
    return {{"device_name", graph.device_name},
            {"rounds", graph.num_rounds},
            {"tensors", std::move(tensors)},
            {"ops", std::move(ops)}};
}

models::Result<LayoutGraph> layout_graph_from_json(const json& from) {
    try {
        LayoutGraph graph{.device_name = from.at("device_name"), .num_rounds = from.at("rounds")};
        for (const json& tensor : from.at("tensors")) graph.tensors.push_back(tensor_from(tensor));
        require(graph.tensors.size() <= kMostLayoutTensors, "the number of tensors");
        for (const json& op : from.at("ops")) graph.ops.push_back(op_from(op, graph.tensors));
        return graph;
    } catch (const std::exception& error) {  // of the JSON library, or of require
        return models::fail("The worker's times of the layouts cannot be read: {}.", error.what());
    }
}

}  // namespace profiler
