#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/ops/op_usage.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/analysis/step/breakdown.h"
#include "profiler/analysis/step/growth.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/analysis/step/value_reads.h"
#include "profiler/tables/columns.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

/// The reports of `temposcope info`. Each exists as a table for people and as JSON with its rows
/// under `rows`. docs/commands.md lists the JSON keys. They use the step report that the trace
/// carries, so `temposcope info` computes it once.
namespace app {

void print_overview(Output& output, const profiler::NamedTrace& named);
nlohmann::json overview_json(const profiler::NamedTrace& named);

/// In the order of the CSV's columns.
const std::vector<profiler::TableColumn<profiler::LedgerRow>>& ledger_columns();
void print_ledger(Output& output, const profiler::NamedTrace& named,
                  const profiler::LedgerOptions& options);
nlohmann::json ledger_json(const profiler::NamedTrace& named,
                           const profiler::LedgerOptions& options);
/// Its sums.
void print_saved_by(Output& output, const profiler::NamedTrace& named,
                    const profiler::LedgerOptions& options, profiler::GroupBy by);
nlohmann::json saved_by_json(const profiler::NamedTrace& named,
                             const profiler::LedgerOptions& options, profiler::GroupBy by);

void print_peak(Output& output, const profiler::NamedTrace& named, profiler::GroupBy by);
nlohmann::json peak_json(const profiler::NamedTrace& named, profiler::GroupBy by);

/// What grows from step to step.
void print_growth(Output& output, const profiler::NamedTrace& named);
nlohmann::json growth_json(const profiler::NamedTrace& named);

void print_ops(Output& output, const profiler::NamedTrace& named);
nlohmann::json ops_json(const profiler::NamedTrace& named);

void print_diagnostics(Output& output, const profiler::NamedTrace& named);
nlohmann::json diagnostics_json(const profiler::NamedTrace& named);

/// The ranks of a run as a table: what each holds at its peak.
void print_ranks(Output& output, const profiler::RankRun& run);
/// {world_size, shared_step, imbalance, clocks, left_out, rows: [{rank, file, device,
/// peak_allocated_bytes, ...}]}; `left_out` are files of ranks that could not be read.
nlohmann::json ranks_json(const profiler::RankRun& run,
                          const std::vector<std::string>& left_out = {});

// ---- shared by commands -----------------------------------------------------------------------

/// {"parameter_bytes": 12, ...}, all classes.
nlohmann::json by_class_json(const profiler::CategoryBytes& by_category);

/// {error, message, requested_bytes, ..., line, code, outcome}; null for what is not known.
nlohmann::json failure_json(const profiler::Trace& trace, profiler::Id<profiler::Failure> failure);
/// Rows: {place, op, kind, count, answer}.
nlohmann::json value_reads_json(const std::vector<profiler::ValueReadLine>& lines);
/// [{line, code, bytes_per_step, bytes_by_step, held_by, steps_until_full}]
nlohmann::json growing_lines_json(const std::vector<profiler::GrowingLine>& lines);

/// {name, size_bytes, count}
nlohmann::json group_json(const profiler::BreakdownRow& group);

/// The rows of a breakdown as a table. The last row sums the groups beyond `max_rows`; `counted`
/// is what a row counts.
profiler::TextTable breakdown_table(const std::vector<profiler::BreakdownRow>& rows,
                                    std::string_view title, std::size_t max_rows,
                                    std::string_view counted = "allocations");

/// The ops that take the longest; the last row sums the others.
profiler::TextTable ops_table(const std::vector<profiler::OpUsage>& usage);
/// [{phase, op, calls, device_time_ns, scratch_bytes, kernels: [{name, launches, ...}]}]
nlohmann::json ops_json(const std::vector<profiler::OpUsage>& usage);

/// For a breakdown by line of traces without call stacks.
inline constexpr std::string_view kNoCallStacks =
    "No call stacks were recorded. temposcope run records them, unless it has --no-stacks. So do "
    "the PyTorch profiler with with_stack=True, and PyTorch memory snapshots, unless their history "
    "was recorded with context=None.";
/// For a breakdown by line of a profiler's trace.
inline constexpr std::string_view kWhichLines =
    "The PyTorch profiler writes the line at which a function begins, not the line that allocated.";

/// What a sweep measured, a row for each batch, in the order of the CSV's columns.
profiler::DataTable sweep_data(const std::vector<profiler::ThroughputPoint>& curve);

/// {max_batch_size, max_batch_size_at_least, max_batch_size_below}: the maximum if the sweep found
/// it, and the bounds that it knows; null for what it does not know.
nlohmann::json max_batch_json(const profiler::ComparisonColumn& column);
/// Null where the file does not say what is saved.
nlohmann::json saved_bytes_json(const profiler::ComparisonColumn& column);

/// {layer, formula, ledger_bytes, closed_form_bytes, equal}; null when there is no closed form.
nlohmann::json closed_form_json(const models::Result<profiler::ClosedFormCheck>& check);

}  // namespace app
