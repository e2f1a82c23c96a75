#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"
#include "profiler/view/peak/ledger_match.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

using namespace profiler;

/// "eT", and its bytes when they differ from the row's.
std::string formula_text(const ClosedFormRow& formula, const LedgerRow& row) {
    if (formula.size_bytes == row.size_bytes) return formula.formula;
    return fmt::format("{} = {}", formula.formula, format_count(formula.size_bytes));
}

/// "[128, 512, 64]" as an array of numbers; another text as it is.
nlohmann::json shape_json(std::string_view shape) {
    auto json = nlohmann::json::parse(shape, nullptr, /*allow_exceptions=*/false);
    return json.is_array() ? json : nlohmann::json(shape);
}

std::string why_empty(const Trace& trace, const std::string& module_path) {
    if (!records_saves(trace)) {
        return "Saved tensors are not recorded in this file: record the program with "
               "temposcope run to see them.";
    }
    return module_path.empty()
               ? "Nothing is saved: no op saved a tensor in the last recorded forward."
               : fmt::format("Nothing is saved in {}.", module_path);
}

}  // namespace

const std::vector<TableColumn<LedgerRow>>& ledger_columns() {
    using Row = LedgerRow;
    const auto all_savers = [](const Row& row) {
        return fmt::format("{}", fmt::join(row.saved_by, ";"));
    };
    const auto savers = [](const Row& row) {
        std::vector<std::string_view> names = row.saved_by;
        names.erase(std::unique(names.begin(), names.end()), names.end());
        return fmt::format("{}", fmt::join(names, ", "));
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"scope", "module", Unit::kText, "", &Row::module_path},
        {"op", "op", Unit::kText, "", &Row::op},
        {"tensor", "tensor", Unit::kText, "", &Row::tensor},
        {"shape", "shape", Unit::kText, "", &Row::shape},
        {"dtype", "dtype", Unit::kText, "", [](const Row& row) { return name_of(row.dtype); }},
        {"role", "category", Unit::kText, "", [](const Row& row) { return name_of(row.category); }},
        {"size_bytes", "bytes", Unit::kCount, "", &Row::size_bytes},
        {"saved_by", "saved by", Unit::kText, "", all_savers, savers}};
    return kColumns;
}

void print_ledger(Output& output, const NamedTrace& named, const LedgerOptions& options) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const auto& check = report->closed_form;
    const Ledger ledger = build_ledger(trace, report->peak, options);
    const auto formula = check ? match_closed_form(ledger, check->form, trace.run().num_layers)
                               : std::vector<std::size_t>(ledger.rows.size(), kNoRow);
    output.line(output.styled(fmt::format("Saved for backward: {}", named.file), Style::kBold));
    output.line(describe_run(trace));
    output.line();
    if (ledger.rows.empty()) {
        output.line(why_empty(trace, options.module_path));
        return;
    }
    const auto closed_form = [&](const LedgerRow& row) {
        const std::size_t of_row = formula[static_cast<std::size_t>(&row - ledger.rows.data())];
        return of_row == kNoRow ? Cell() : formula_text(check->form.rows[of_row], row);
    };
    auto columns = pick(ledger_columns(), {"scope", "tensor", "shape", "dtype", "size_bytes"});
    columns.push_back({"", "size", Unit::kBytes, "", &LedgerRow::size_bytes});
    columns.push_back({"", "closed form", Unit::kText, "", closed_form});
    for (const auto& column : pick(ledger_columns(), {"saved_by", "role"})) {
        if (column.id != "role" || options.include_all) columns.push_back(column);
    }
    output.table(text_table(columns, ledger.rows));
    output.line();
    output.line(
        fmt::format("{} {}, {} ({}).", format_count(static_cast<int64_t>(ledger.rows.size())),
                    ledger.rows.size() == 1 ? "tensor" : "tensors",
                    format_exact_bytes(ledger.total_bytes), format_bytes(ledger.total_bytes)));
    output.line(check ? to_sentence_below_rows(*check) : check.error().message);
}

nlohmann::json ledger_json(const NamedTrace& named, const LedgerOptions& options) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const Ledger ledger = build_ledger(trace, report->peak, options);
    nlohmann::json json = describe_trace(named);
    json["total_bytes"] = ledger.total_bytes;
    json["closed_form"] = closed_form_json(report->closed_form);
    json["rows"] = json_rows(data_table(ledger_columns(), ledger.rows));
    for (std::size_t i = 0; i < ledger.rows.size(); ++i) {
        json["rows"][i]["shape"] = shape_json(ledger.rows[i].shape);
        json["rows"][i]["saved_by"] = ledger.rows[i].saved_by;
    }
    return json;
}

}  // namespace app
