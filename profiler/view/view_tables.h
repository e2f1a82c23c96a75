#pragma once

#include "profiler/analysis/diagnostics.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/data_table.h"
#include "profiler/view/ledger_view.h"
#include "profiler/view/live_blocks_view.h"
#include "profiler/view/movement_view.h"
#include "profiler/view/planner_view.h"
#include "profiler/view/range_view.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

/// What panels show, as tables for other programs: the rows that a filter leaves, in their order,
/// with raw bytes and nanoseconds. Names of columns are the keys of the commands' JSON where there
/// is one (docs/commands.md).
namespace profiler {

/// A row for each recipe; planned figures have columns of their own.
DataTable compare_data(const Comparison& comparison, const CompareView& view);
/// A row for each recipe and batch: what sweeps measured, and what is predicted.
DataTable throughput_data(const Comparison& comparison, const CompareView& view);

/// `columns`: those that are shown, in their order; empty: all.
DataTable ledger_data(const LedgerView& view, std::span<const LedgerColumn> columns = {});

/// A row for each op.
DataTable movement_data(const MovementTrace& movement);

DataTable live_blocks_data(const LiveBlocksView& view);

/// Rows of a range's tables with A, B and B - A. `unit` ends the names of the columns: "bytes".
DataTable range_data(const RangeView& view, const std::vector<RangeRow>& rows,
                     const std::string& unit);
/// Its figures: durations and bytes, each with its unit.
DataTable range_figures_data(const RangeView& view);

/// A row for each recipe and batch of the plan.
DataTable planner_data(const PlannerView& view);

/// Calls, kernels and copies that run at some time in [start_ns, end_ns) of their trace's clock, at
/// most `most` of them.
DataTable activity_data(const ActivitySource& source, int64_t start_ns, int64_t end_ns,
                        std::size_t most);

/// Each trace by its name.
DataTable diagnostics_data(
    std::span<const std::pair<std::string, std::vector<DiagnosticItem>>> traces);

}  // namespace profiler
