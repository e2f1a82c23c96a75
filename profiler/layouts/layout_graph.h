#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The ops of a layer in the order in which they run, and the measured time of each in every
/// configuration. The search looks for the fastest path through it (layout_plan.h).
namespace profiler {

enum class LayoutRole : uint8_t {
    kChain,   // the layer's input, output and their gradients: one order, so that layers chain
    kWeight,  // and its gradient: one tensor here, so one order. Copies are never needed
    kOther
};

struct LayoutTensor {
    std::string name;        // "query"
    std::string dimensions;  // "hpbj", in no order
    LayoutRole role = LayoutRole::kOther;
    std::vector<std::string> orders;  // "bhjp": those that some configuration reads or writes
    /// Time of a copy from one order to another, [from * orders.size() + to]; negative: none was
    /// measured, and the search makes none. Empty: the same for all.
    std::vector<double> copy_ns;

    double copy_time_ns(std::size_t from, std::size_t to) const;  // negative: no copy
    /// The place of an order in `orders`; orders.size() if it is not one of them.
    std::size_t find(const std::string& order) const;
};

/// One way to run an op: an order for each of its tensors.
struct LayoutConfiguration {
    std::vector<uint8_t> orders;  // places in LayoutTensor::orders, as LayoutOp::tensors
    double time_ns = 0;
};

struct LayoutOp {
    std::string name;  // "scores"
    OpClass op_class = OpClass::kOther;
    bool is_backward = false;
    std::vector<std::size_t> tensors;  // the read tensors, then the written tensors
    std::size_t num_reads = 0;
    std::vector<LayoutConfiguration> configurations;

    double best_ns() const;  // of all configurations
};

/// Of a graph; the orders of a tensor are fewer than 128.
inline constexpr std::size_t kMostLayoutTensors = 48;

struct LayoutGraph {
    std::string device_name;
    int64_t num_rounds = 0;  // measurements behind each median
    std::vector<LayoutTensor> tensors;
    std::vector<LayoutOp> ops;  // forward first
};

nlohmann::json to_json(const LayoutGraph& graph);
/// Errors: a field that is missing, of another type, or out of range.
models::Result<LayoutGraph> layout_graph_from_json(const nlohmann::json& json);

}  // namespace profiler
