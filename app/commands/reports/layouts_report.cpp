#include "app/commands/reports/layouts_report.h"

#include "app/commands/console/json_values.h"
#include "profiler/charts/charts.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/file/write_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace app {
namespace {

using namespace profiler;

int64_t integer(double ns) { return std::llround(ns); }

std::optional<int64_t> integer(const std::optional<double>& ns) {
    return ns ? std::optional(integer(*ns)) : std::nullopt;
}

std::string pass_order_name(PassOrder order) {
    return order == PassOrder::kForwardFirst ? "forward_first" : "backward_first";
}

/// In the order of the CSV's columns.
DataTable rows_table(const std::vector<LayoutsViewRow>& rows) {
    using Row = LayoutsViewRow;
    static const std::vector<TableColumn<Row>> kColumns{
        {.id = "op", .value = &Row::op},
        {.id = "class", .value = [](const Row& row) { return name_of(row.op_class); }},
        {.id = "phase",
         .value = [](const Row& row) { return row.is_backward ? "backward" : "forward"; }},
        {.id = "orders", .value = &Row::orders},
        {.id = "copies",
         .value = [](const Row& row) { return fmt::format("{}", fmt::join(row.copies, ", ")); }},
        {.id = "time_ns", .value = [](const Row& row) { return integer(row.time_ns); }},
        {.id = "copies_ns", .value = [](const Row& row) { return integer(row.copies_ns); }},
        {.id = "best_ns", .value = [](const Row& row) { return integer(row.best_ns); }},
        {.id = "torch_ns", .value = [](const Row& row) { return integer(row.torch_ns); }},
        {.id = "slowest_ns", .value = [](const Row& row) { return integer(row.all_ns.back()); }},
        {.id = "configurations", .value = [](const Row& row) { return row.all_ns.size(); }}};
    return data_table(kColumns, rows);
}

}  // namespace

std::string LayoutsDocument::workload() const {
    return fmt::format("{} layer, B={} S={} H={} A={} I={}", model, batch_size, seq_len,
                       hidden_size, num_heads, intermediate_size);
}

models::Result<void> check_layouts_chart(const std::string& path) {
    if (path.empty()) return {};
    const auto format = profiler::chart_format_of(path);
    if (!format) return tl::unexpected(format.error());
    return {};
}

models::Result<void> write_layouts_chart(const LayoutsDocument& document) {
    const auto format = profiler::chart_format_of(document.chart);
    if (!format) return tl::unexpected(format.error());
    const auto chart = profiler::render_layouts_chart(document.view, document.workload(),
                                                      profiler::light_theme(), {.format = *format});
    if (!chart) return tl::unexpected(chart.error());
    return profiler::write_file(document.chart, *chart);
}

void print_layouts(Output& output, const LayoutsDocument& document) {
    const LayoutsView& view = document.view;
    output.heading(fmt::format("{} on {}", document.workload(), view.device));
    output.table(view.table);
    output.line();
    output.line(view.sentence);
    if (!document.note.empty()) output.line(document.note);
    output.line(fmt::format(
        "{} configurations, median of {} rounds. The layer's input and output are {}; {} was "
        "planned first.",
        view.num_configurations, view.num_rounds, view.chain_order,
        view.pass_order == PassOrder::kForwardFirst ? "forward" : "backward"));
    if (!document.chart.empty()) output.line("wrote " + document.chart);
}

nlohmann::json layouts_json(const LayoutsDocument& document) {
    const LayoutsView& view = document.view;
    nlohmann::json rows = json_rows(rows_table(view.rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const LayoutsViewRow& row = view.rows[i];
        rows[i]["written_order"] = row.written;
        rows[i]["copies"] = row.copies;
        rows[i]["gap"] = row.gap();
    }
    return {{"model", document.model},
            {"batch_size", document.batch_size},
            {"seq_len", document.seq_len},
            {"hidden_size", document.hidden_size},
            {"num_heads", document.num_heads},
            {"intermediate_size", document.intermediate_size},
            {"device", document.device},
            {"device_name", view.device},
            {"rounds", view.num_rounds},
            {"configurations", view.num_configurations},
            {"sentence", view.sentence},
            {"note", document.note},
            {"chain_order", view.chain_order},
            {"pass_order", pass_order_name(view.pass_order)},
            {"time_ns", integer(view.time_ns)},
            {"copies_ns", integer(view.copies_ns)},
            {"layout_free_ns", integer(view.free_ns)},
            {"torch_ns", or_null(integer(view.torch_ns))},
            {"whole_layer_ns", integer(view.whole_ns)},
            {"torch_whole_layer_ns", or_null(integer(view.torch_whole_ns))},
            {"chart", document.chart},
            {"rows", std::move(rows)}};
}

std::string layouts_csv(const LayoutsDocument& document) {
    return to_csv(rows_table(document.view.rows));
}

}  // namespace app
