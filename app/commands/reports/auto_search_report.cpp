#include "app/commands/reports/auto_search_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace app {
namespace {

using profiler::Align;
using profiler::TextTable;

constexpr const char* kNoFigure = "–";

template <typename T, typename ToText>
std::string text_or_dash(const std::optional<T>& value, const ToText& to_text) {
    return value ? to_text(*value) : kNoFigure;
}

std::string count_or_dash(const std::optional<int64_t>& value) {
    return text_or_dash(value, [](int64_t count) { return fmt::format("{}", count); });
}

std::string duration_or_dash(const std::optional<int64_t>& value) {
    return text_or_dash(value, [](int64_t ns) { return profiler::format_duration(ns); });
}

TextTable search_table(const AutoSearchReport& report) {
    TextTable table{.columns = {{"mode", Align::kLeft},
                                {"largest batch", Align::kRight},
                                {"fastest batch", Align::kRight},
                                {"step", Align::kRight},
                                {"seq/s", Align::kRight},
                                {"gain", Align::kRight},
                                {"found in", Align::kRight},
                                {"recipes", Align::kRight},
                                {"batches run", Align::kRight},
                                {"recipe", Align::kLeft}}};
    for (const AutoSearchRow& row : report.rows) {
        table.rows.push_back(
            {row.mode, count_or_dash(row.max_batch_size), count_or_dash(row.batch_size),
             duration_or_dash(row.step_time_ns),
             text_or_dash(row.sequences_per_s,
                          [](double rate) { return fmt::format("{:.3g}", rate); }),
             text_or_dash(row.ratio,
                          [](double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }),
             duration_or_dash(row.search_time_ns), fmt::format("{}", row.tried_recipes),
             row.tried_steps > 0 ? fmt::format("{}", row.tried_steps) : kNoFigure,
             row.recipe.empty() ? kNoFigure : row.recipe});
    }
    return table;
}

nlohmann::json search_row_json(const AutoSearchRow& row) {
    return {{"mode", row.mode},
            {"recipe", row.recipe.empty() ? nlohmann::json() : nlohmann::json(row.recipe)},
            {"max_batch_size", or_null(row.max_batch_size)},
            {"batch_size", or_null(row.batch_size)},
            {"step_time_ns", or_null(row.step_time_ns)},
            {"throughput_sequences_per_s", or_null(row.sequences_per_s)},
            {"throughput_ratio", or_null(row.ratio)},
            {"search_time_ns", or_null(row.search_time_ns)},
            {"tried_recipes", row.tried_recipes},
            {"tried_batches", row.tried_steps},
            {"why", row.why}};
}

constexpr std::array kSearchColumns{"mode",
                                    "recipe",
                                    "max_batch_size",
                                    "batch_size",
                                    "step_time_ns",
                                    "throughput_ratio",
                                    "throughput_sequences_per_s",
                                    "search_time_ns",
                                    "tried_recipes",
                                    "tried_batches",
                                    "why"};

}  // namespace

void print_auto_search(Output& output, const AutoSearchReport& report) {
    const models::Workload& workload = report.workload;
    const std::string limit =
        report.memory_limit_bytes < 0
            ? std::string()
            : fmt::format(" within {}", profiler::format_bytes(report.memory_limit_bytes));
    output.heading(fmt::format("{}, {} layers, sequence length {}, {}, on {}{}: from {} to {}",
                               workload.model.name, workload.model.num_layers, workload.seq_len,
                               models::name_of(workload.precision), report.device, limit,
                               report.from, report.to));
    output.table(search_table(report));
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
    nlohmann::json rows = nlohmann::json::array();
    for (const AutoSearchRow& row : report.rows) rows.push_back(search_row_json(row));
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
            {"rows", std::move(rows)}};
}

std::string auto_search_csv(const AutoSearchReport& report) {
    CsvWriter csv;
    csv.row(std::vector<std::string>(kSearchColumns.begin(), kSearchColumns.end()));
    for (const AutoSearchRow& row : report.rows) {
        const nlohmann::json json = search_row_json(row);
        std::vector<std::string> cells;
        for (const char* column : kSearchColumns) {
            const nlohmann::json& value = json[column];
            cells.push_back(value.is_null()     ? ""
                            : value.is_string() ? value.get<std::string>()
                                                : value.dump());
        }
        csv.row(cells);
    }
    return csv.take();
}

}  // namespace app
