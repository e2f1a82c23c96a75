#include "app/commands/reports/auto_search_report.h"

#include "profiler/tables/columns.h"
#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

/// In the order of the CSV's columns.
const std::vector<TableColumn<AutoSearchRow>>& search_columns() {
    using Row = AutoSearchRow;
    const auto gain_text = [](const Row& row) -> std::string {
        return row.ratio ? fmt::format("{:+.1f} %", 100 * (*row.ratio - 1)) : kNoValue;
    };
    const auto rate_text = [](const Row& row) -> std::string {
        return row.sequences_per_s ? fmt::format("{:.3g}", *row.sequences_per_s) : kNoValue;
    };
    const auto steps_text = [](const Row& row) -> std::string {
        return row.tried_steps > 0 ? fmt::format("{}", row.tried_steps) : kNoValue;
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"mode", "mode", Unit::kText, "", &Row::mode},
        {"recipe", "recipe", Unit::kText, "", [](const Row& row) { return known(row.recipe); }},
        {"max_batch_size", "largest batch", Unit::kNumber, "", &Row::max_batch_size},
        {"batch_size", "fastest batch", Unit::kNumber, "", &Row::batch_size},
        {"step_time_ns", "step", Unit::kNanoseconds, "", &Row::step_time_ns},
        {"throughput_ratio", "gain", Unit::kShare, "", &Row::ratio, gain_text},
        {"throughput_sequences_per_s", "seq/s", Unit::kRate, "", &Row::sequences_per_s, rate_text},
        {"search_time_ns", "found in", Unit::kNanoseconds, "", &Row::search_time_ns},
        {"tried_recipes", "recipes", Unit::kNumber, "", &Row::tried_recipes},
        {"tried_batches", "batches run", Unit::kNumber, "", &Row::tried_steps, steps_text},
        {"why", "", Unit::kText, "", &Row::why}};
    return kColumns;
}

}  // namespace

void print_auto_search(Output& output, const AutoSearchReport& report) {
    const models::Workload& workload = report.workload;
    const std::string limit =
        report.memory_limit_bytes < 0
            ? std::string()
            : fmt::format(" within {}", format_bytes(report.memory_limit_bytes));
    output.heading(fmt::format("{}, {} layers, sequence length {}, {}, on {}{}: from {} to {}",
                               workload.model.name, workload.model.num_layers, workload.seq_len,
                               models::name_of(workload.precision), report.device, limit,
                               report.from, report.to));
    output.table(text_table(
        pick(search_columns(),
             {"mode", "max_batch_size", "batch_size", "step_time_ns", "throughput_sequences_per_s",
              "throughput_ratio", "search_time_ns", "tried_recipes", "tried_batches", "recipe"}),
        report.rows));
    output.line();
    for (const AutoSearchRow& row : report.rows) {
        if (!row.why.empty()) output.line(fmt::format("{}: {}", row.mode, row.why));
    }
    if (report.ran_in_turn) {
        output.line(
            "The figures of the table are from steps of all rows that took turns after the "
            "searches; the sentences above have the figures that each search saw.");
    }
}

nlohmann::json auto_search_json(const AutoSearchReport& report) {
    const models::Workload& workload = report.workload;
    return {{"model", workload.model.name},
            {"head", models::name_of(workload.head)},
            {"precision", models::name_of(workload.precision)},
            {"seq_len", workload.seq_len},
            {"num_layers", workload.model.num_layers},
            {"from", report.from},
            {"to", report.to},
            {"device", report.device},
            {"memory_limit_bytes", report.memory_limit_bytes},
            {"measured_in_turn", report.ran_in_turn},
            {"rows", json_rows(data_table(search_columns(), report.rows))}};
}

std::string auto_search_csv(const AutoSearchReport& report) {
    return to_csv(data_table(search_columns(), report.rows), Decimals::kAsJson);
}

}  // namespace app
