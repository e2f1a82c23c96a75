#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/closed_form.h"
#include "profiler/analysis/run_text.h"
#include "profiler/trace/units.h"
#include "profiler/view/ledger_match.h"

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

std::string savers(const LedgerRow& row) {
    std::vector<std::string_view> names = row.saved_by;
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return fmt::format("{}", fmt::join(names, ", "));
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
    TextTable table;
    table.columns = {{"module", Align::kLeft, {}},      {"tensor", Align::kLeft, {}},
                     {"shape", Align::kLeft, {}},       {"dtype", Align::kLeft, {}},
                     {"bytes", Align::kRight, {}},      {"size", Align::kRight, {}},
                     {"closed form", Align::kLeft, {}}, {"saved by", Align::kLeft, {}}};
    if (options.include_all) table.columns.push_back({"category", Align::kLeft, {}});
    for (std::size_t i = 0; i < ledger.rows.size(); ++i) {
        const LedgerRow& row = ledger.rows[i];
        table.rows.push_back(
            {std::string(row.module_path), std::string(row.tensor), std::string(row.shape),
             std::string(name_of(row.dtype)), format_count(row.size_bytes),
             format_bytes(row.size_bytes),
             formula[i] == kNoRow ? "–" : formula_text(check->form.rows[formula[i]], row),
             savers(row)});
        if (options.include_all) table.rows.back().push_back(std::string(name_of(row.category)));
    }
    output.table(table);
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
    json["rows"] = nlohmann::json::array();
    for (const LedgerRow& row : ledger.rows) {
        json["rows"].push_back({{"scope", row.module_path},
                                {"op", row.op},
                                {"tensor", row.tensor},
                                {"shape", shape_json(row.shape)},
                                {"dtype", name_of(row.dtype)},
                                {"role", name_of(row.category)},
                                {"size_bytes", row.size_bytes},
                                {"saved_by", row.saved_by}});
    }
    return json;
}

}  // namespace app
