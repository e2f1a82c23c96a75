#pragma once

#include "app/commands/terminal.h"
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

void print_health(Output& output, const profiler::NamedTrace& named);
nlohmann::json health_json(const profiler::NamedTrace& named);

// ---- shared by commands -----------------------------------------------------------------------

/// "{"parameter": 12, ...}", all classes.
nlohmann::json by_class_json(const profiler::RoleBytes& by_role);

/// The rows of a breakdown as a table; groups beyond `max_rows` are summed in the last row.
profiler::TextTable breakdown_table(const std::vector<profiler::BreakdownRow>& rows,
                                    std::string_view title, std::size_t max_rows);

/// "bert-large, 3 layers, layers head, B=8 S=512, fp32"; the file's own words when imported.
std::string describe_workload(const profiler::Trace& trace);

/// "measured on the CPU (AMD EPYC), 2 threads".
std::string describe_source(const profiler::Trace& trace);

/// How the ledger of a middle layer compares with its closed form; empty when there is none.
std::string closed_form_sentence(const profiler::Trace& trace);

/// {layer, formula, ledger_bytes, closed_form_bytes, equal}; null when there is none.
nlohmann::json closed_form_json(const profiler::Trace& trace);

}  // namespace app
