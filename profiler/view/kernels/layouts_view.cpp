#include "profiler/view/kernels/layouts_view.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {
namespace {

constexpr const char* kArrow = "→";

std::string duration_text(double ns) { return format_duration(static_cast<int64_t>(ns)); }

std::string orders_text(const LayoutGraph& graph, const LayoutOp& op,
                        const LayoutConfiguration& configuration) {
    std::string text;
    for (std::size_t i = 0; i < op.tensors.size(); ++i) {
        if (i > 0) text += i == op.num_reads ? fmt::format(" {} ", kArrow) : " ";
        text += graph.tensors[op.tensors[i]].orders[configuration.orders[i]];
    }
    return text;
}

std::string written_order(const LayoutGraph& graph, const LayoutOp& op,
                          const LayoutConfiguration& configuration) {
    return graph.tensors[op.tensors.back()].orders[configuration.orders.back()];
}

LayoutsViewRow row_of(const LayoutGraph& graph, const LayoutStep& step, const LayoutStep* torch) {
    const LayoutOp& op = graph.ops[step.op];
    const LayoutConfiguration& chosen = op.configurations[step.configuration];
    LayoutsViewRow row{.op = op.name,
                       .op_class = op.op_class,
                       .is_backward = op.is_backward,
                       .orders = orders_text(graph, op, chosen),
                       .written = written_order(graph, op, chosen),
                       .time_ns = step.time_ns,
                       .copies_ns = step.total_ns() - step.time_ns,
                       .best_ns = op.best_ns()};
    for (const LayoutCopy& copy : step.copies) {
        const LayoutTensor& tensor = graph.tensors[copy.tensor];
        row.copies.push_back(fmt::format("{} {} {} {}", tensor.name, tensor.orders[copy.from],
                                         kArrow, tensor.orders[copy.to]));
    }
    if (torch != nullptr) {
        row.torch_ns = torch->total_ns();
        row.torch_written = written_order(graph, op, op.configurations[torch->configuration]);
    }
    for (const LayoutConfiguration& one : op.configurations) row.all_ns.push_back(one.time_ns);
    std::ranges::sort(row.all_ns);
    return row;
}

std::vector<std::string> cells_of(const LayoutsViewRow& row) {
    std::string copies;
    for (const std::string& copy : row.copies) copies += (copies.empty() ? "" : ", ") + copy;
    return {row.op,
            std::string(name_of(row.op_class)),
            row.orders,
            duration_text(row.time_ns),
            row.copies_ns > 0 ? duration_text(row.copies_ns) : std::string(),
            duration_text(row.best_ns),
            format_percent(row.gap(), true),
            row.torch_ns ? duration_text(*row.torch_ns) : kNoValue,
            copies};
}

TextTable table_of(const LayoutsView& view) {
    TextTable table{.columns = {{"op", Align::kLeft},
                                {"class", Align::kLeft},
                                {"orders", Align::kLeft},
                                {"time", Align::kRight},
                                {"copies", Align::kRight},
                                {"best", Align::kRight},
                                {"gap", Align::kRight},
                                {"torch", Align::kRight},
                                {"copied", Align::kLeft}}};
    for (const LayoutsViewRow& row : view.rows) table.rows.push_back(cells_of(row));
    table.rows.push_back({"sum", "", "", duration_text(view.time_ns - view.copies_ns),
                          view.copies_ns > 0 ? duration_text(view.copies_ns) : std::string(),
                          duration_text(view.free_ns),
                          format_percent(view.time_ns / view.free_ns - 1, true),
                          view.torch_ns ? duration_text(*view.torch_ns) : kNoValue, ""});
    return table;
}

std::string sentence_of(const LayoutsView& view, bool was_busy) {
    std::string text = fmt::format(
        "The fastest orders take {}, {} more than the fastest configuration of each op "
        "by itself ({}).",
        duration_text(view.time_ns), format_percent(view.time_ns / view.free_ns - 1),
        duration_text(view.free_ns));
    if (view.torch_ns) {
        text += fmt::format(" In torch's orders the ops take {}, {:.2f} times as long.",
                            duration_text(*view.torch_ns), *view.torch_ns / view.time_ns);
    }
    if (view.torch_whole_ns) {
        text += fmt::format(
            " Run as a whole, the layer takes {} in these orders and {} in torch's, {:.2f} times "
            "as long.",
            duration_text(view.whole_ns), duration_text(*view.torch_whole_ns),
            *view.torch_whole_ns / view.whole_ns);
        if (!was_busy && *view.torch_whole_ns <= view.whole_ns) {
            text += " So torch's orders are the better choice here.";
        }
    }
    if (was_busy) text += " The machine was busy, so the times do not say which is faster.";
    return text;
}

}  // namespace

LayoutsView build_layouts_view(const LayoutGraph& graph, const LayoutsRequest& request) {
    const LayoutPlan& plan = *request.plan;
    const LayoutPlan* const torch = request.torch;
    LayoutsView view{.device = graph.device_name,
                     .time_ns = plan.time_ns,
                     .copies_ns = plan.copies_ns(),
                     .free_ns = layout_free_ns(graph),
                     .whole_ns = request.whole_ns.front(),
                     .pass_order = plan.pass_order,
                     .num_rounds = graph.num_rounds};
    if (torch != nullptr) {
        view.torch_ns = torch->time_ns;
        view.torch_whole_ns = request.whole_ns.back();
    }
    for (std::size_t i = 0; i < graph.tensors.size() && view.chain_order.empty(); ++i) {
        if (graph.tensors[i].role != LayoutRole::kChain || plan.orders[i] == kAnyOrder) continue;
        view.chain_order = graph.tensors[i].orders[static_cast<std::size_t>(plan.orders[i])];
    }
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        view.rows.push_back(row_of(graph, plan.steps[i], torch ? &torch->steps[i] : nullptr));
        view.num_configurations += static_cast<int64_t>(view.rows.back().all_ns.size());
    }
    view.table = table_of(view);
    view.sentence = sentence_of(view, request.was_busy);
    return view;
}

}  // namespace profiler
