#include "profiler/layouts/layout_run.h"

#include "profiler/layouts/encoder_ops.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace profiler {
namespace {

using nlohmann::json;

json copies_json(const std::vector<LayoutRunCopy>& copies) {
    json list = json::array();
    for (const LayoutRunCopy& copy : copies) {
        list.push_back({{"tensor", copy.tensor}, {"from", copy.from}, {"to", copy.to}});
    }
    return list;
}

/// Throws if `order` is no order of the tensor.
void check_order(const std::string& tensor, const std::string& order) {
    const auto& tensors = encoder_layer().tensors;
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const LayoutTensor& one) { return one.name == tensor; });
    const bool is_order = found != tensors.end() &&
                          std::is_permutation(order.begin(), order.end(), found->dimensions.begin(),
                                              found->dimensions.end());
    if (!is_order) throw std::invalid_argument("'" + order + "' is no order of " + tensor);
}

std::vector<LayoutRunCopy> copies_from(const json& list) {
    std::vector<LayoutRunCopy> copies;
    for (const json& one : list) {
        const LayoutRunCopy& copy =
            copies.emplace_back(LayoutRunCopy{one.at("tensor"), one.at("from"), one.at("to")});
        check_order(copy.tensor, copy.from);
        check_order(copy.tensor, copy.to);
    }
    return copies;
}

LayoutRunStep step_from(const json& from) {
    LayoutRunStep step{.op = from.at("op"),
                       .orders = from.at("orders"),
                       .before = copies_from(from.at("before")),
                       .after = copies_from(from.at("after"))};
    if (step.op >= encoder_layer().ops.size()) throw std::invalid_argument("an unknown op");
    const EncoderOp& op = encoder_layer().ops[step.op];
    if (step.orders.size() != op.reads.size() + op.writes.size()) {
        throw std::invalid_argument("the number of orders");
    }
    for (std::size_t i = 0; i < step.orders.size(); ++i) {
        const bool reads = i < op.reads.size();
        check_order(reads ? op.reads[i] : op.writes[i - op.reads.size()], step.orders[i]);
    }
    return step;
}

}  // namespace

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

json to_json(const LayoutRun& run) {
    json steps = json::array();
    for (const LayoutRunStep& step : run) {
        steps.push_back({{"op", step.op},
                         {"orders", step.orders},
                         {"before", copies_json(step.before)},
                         {"after", copies_json(step.after)}});
    }
    return steps;
}

models::Result<LayoutRun> layout_run_from_json(const json& from) {
    try {
        LayoutRun run;
        for (const json& step : from) run.push_back(step_from(step));
        return run;
    } catch (const std::exception& error) {  // of the JSON library, or of the checks
        return models::fail(
            "The orders to run cannot be read ({}): the program is of another "
            "build.",
            error.what());
    }
}

}  // namespace profiler
