#pragma once

#include "profiler/layouts/layout_plan.h"
#include "profiler/tables/columns.h"

#include <optional>
#include <string>
#include <vector>

/// What `temposcope layouts` shows: the plan beside torch's orders and beside the least time.
namespace profiler {

struct LayoutsViewRow {
    std::string op;  // "scores"
    OpClass op_class = OpClass::kOther;
    bool is_backward = false;
    std::string orders;   // "bhjp bhkp → bhjk": what it reads, then what it writes
    std::string written;  // "bhjk"
    std::vector<std::string> copies = {};  // "context bhjp → bjhp"
    double time_ns = 0;                    // of the chosen configuration
    double copies_ns = 0;
    double best_ns = 0;                   // of all configurations
    std::optional<double> torch_ns = {};  // in torch's orders, with its copies
    std::string torch_written = {};       // the order in which torch's modules write; may be empty
    std::vector<double> all_ns = {};      // of each configuration, rising

    double gap() const { return (time_ns + copies_ns) / best_ns - 1; }
};

struct LayoutsView {
    std::string device;
    std::string sentence = {};  // what a user would quote
    std::vector<LayoutsViewRow> rows = {};
    double time_ns = 0;                   // of the plan
    double copies_ns = 0;                 // of that
    double free_ns = 0;                   // the least time of each op, without regard to orders
    std::optional<double> torch_ns = {};  // in torch's orders
    /// The same layers run as a whole; these are not sums of ops.
    double whole_ns = 0;
    std::optional<double> torch_whole_ns = {};
    PassOrder pass_order = PassOrder::kForwardFirst;
    std::string chain_order = {};  // of the layer's input, output and their gradients
    int64_t num_configurations = 0;
    int64_t num_rounds = 0;
    TextTable table = {};
};

struct LayoutsRequest {
    const LayoutPlan* plan = nullptr;
    const LayoutPlan* torch = nullptr;  // the plan in torch's orders; null: there is none
    std::vector<double> whole_ns;       // of `plan` and, if there is one, of `torch`
    bool was_busy = false;              // the machine: then times do not say what is faster
};
LayoutsView build_layouts_view(const LayoutGraph& graph, const LayoutsRequest& request);

}  // namespace profiler
