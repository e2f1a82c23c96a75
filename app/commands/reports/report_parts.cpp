#include "app/commands/console/json_values.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/closed_form.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

namespace app {

using namespace profiler;

nlohmann::json by_class_json(const CategoryBytes& by_category) {
    nlohmann::json json = nlohmann::json::object();
    for (std::size_t category = 0; category < by_category.size(); ++category) {
        json[std::string(kCategoryNames[category]) + "_bytes"] = by_category[category];
    }
    return json;
}

constexpr std::size_t kMaxCodeLength = 60;  // characters of a line of code that a table shows

TextTable breakdown_table(const std::vector<BreakdownRow>& rows, std::string_view title,
                          std::size_t max_rows) {
    TextTable table;
    table.columns = {{std::string(title), Align::kLeft},
                     {"allocations", Align::kRight},
                     {"bytes", Align::kRight},
                     {"size", Align::kRight},
                     {"share", Align::kRight}};
    int64_t total_bytes = 0;
    bool has_code = false;
    for (const BreakdownRow& row : rows) {
        total_bytes += row.size_bytes;
        has_code = has_code || !row.code.empty();
    }
    if (has_code) table.columns.push_back({"code", Align::kLeft});
    const auto add = [&](std::string name, int64_t count, int64_t size_bytes,
                         std::string_view code = {}) {
        const double share =
            total_bytes > 0 ? static_cast<double>(size_bytes) / static_cast<double>(total_bytes)
                            : 0;
        table.rows.push_back({std::move(name), format_count(count), format_count(size_bytes),
                              format_bytes(size_bytes), format_percent(share)});
        if (has_code) table.rows.back().emplace_back(code.substr(0, kMaxCodeLength));
    };
    BreakdownRow rest;
    BreakdownRow total;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i < max_rows) add(rows[i].name, rows[i].count, rows[i].size_bytes, rows[i].code);
        BreakdownRow& sum = rest;
        if (i >= max_rows) {
            sum.count += rows[i].count;
            sum.size_bytes += rows[i].size_bytes;
        }
        total.count += rows[i].count;
        total.size_bytes += rows[i].size_bytes;
    }
    if (rows.size() > max_rows) {
        add(fmt::format("{} more", rows.size() - max_rows), rest.count, rest.size_bytes);
    }
    add("total", total.count, total.size_bytes);
    return table;
}

DataTable sweep_data(const std::vector<ThroughputPoint>& curve) {
    using Row = ThroughputPoint;
    const auto outcome = [](const Row& point) {
        return name_of(point.out_of_memory ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk);
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {.id = "batch_size", .value = &Row::batch_size},
        {.id = "outcome", .value = outcome},
        {.id = "peak_allocated_bytes", .value = &Row::peak_allocated_bytes},
        {.id = "step_time_ns", .value = &Row::step_time_ns},
        {.id = "step_time_min_ns", .value = &Row::step_time_min_ns},
        {.id = "step_time_max_ns", .value = &Row::step_time_max_ns},
        {.id = "throughput_sequences_per_s", .value = &Row::sequences_per_s}};
    return data_table(kColumns, curve);
}

nlohmann::json max_batch_json(const ComparisonColumn& column) {
    return {{"max_batch_size", or_null(column.max_batch.exact())},
            {"max_batch_size_at_least", or_null(column.max_batch.at_least)},
            {"max_batch_size_below", or_null(column.max_batch.below)}};
}

nlohmann::json saved_bytes_json(const ComparisonColumn& column) {
    return column.knows_saved ? nlohmann::json(column.saved_bytes) : nlohmann::json();
}

nlohmann::json closed_form_json(const models::Result<ClosedFormCheck>& check) {
    if (!check) return nullptr;
    return {{"layer", check->layer},
            {"formula", check->form.formula},
            {"ledger_bytes", check->ledger_bytes},
            {"closed_form_bytes", check->form.total_bytes},
            {"equal", check->equal()}};
}

}  // namespace app
