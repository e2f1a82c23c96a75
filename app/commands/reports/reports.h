#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/comparison.h"
#include "profiler/analysis/ledger.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

/// The reports of `temposcope info`, each as a table for people and as JSON with its rows under
/// `rows`. docs/commands.md lists the keys.
namespace app {

void print_overview(Output& output, const profiler::NamedTrace& named);
nlohmann::json overview_json(const profiler::NamedTrace& named);

void print_ledger(Output& output, const profiler::NamedTrace& named,
                  const profiler::LedgerOptions& options);
nlohmann::json ledger_json(const profiler::NamedTrace& named,
                           const profiler::LedgerOptions& options);

void print_peak(Output& output, const profiler::NamedTrace& named, profiler::GroupBy by);
nlohmann::json peak_json(const profiler::NamedTrace& named, profiler::GroupBy by);

void print_diagnostics(Output& output, const profiler::NamedTrace& named);
nlohmann::json diagnostics_json(const profiler::NamedTrace& named);

// ---- shared by commands -----------------------------------------------------------------------

/// "{"parameter": 12, ...}", all classes.
nlohmann::json by_class_json(const profiler::CategoryBytes& by_category);

/// The rows of a breakdown as a table; groups beyond `max_rows` are summed in the last row.
profiler::TextTable breakdown_table(const std::vector<profiler::BreakdownRow>& rows,
                                    std::string_view title, std::size_t max_rows);

/// {max_batch_size, max_batch_size_at_least, max_batch_size_below}: the maximum where the sweep
/// found it, and what it knows in any case; null where it knows nothing.
nlohmann::json max_batch_json(const profiler::ComparisonColumn& column);

/// How the ledger of a middle layer compares with its closed form; empty when there is none.
std::string closed_form_sentence(const profiler::Trace& trace);

/// {layer, formula, ledger_bytes, closed_form_bytes, equal}; null when there is none.
nlohmann::json closed_form_json(const profiler::Trace& trace);

}  // namespace app
