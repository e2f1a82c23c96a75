#pragma once

#include "profiler/planner/plan.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/tables/columns.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// A plan as rows of values under one list of columns. CSV and JSON of `temposcope plan` have all
/// of them, its table those of kTableColumns. The window draws plans from planner_view.h.
namespace profiler {

struct PlanColumn : TableColumn<PlanRow> {
    std::string group = {};       // the object of a JSON row that holds the key: "terms"
    bool is_of_request = false;   // the same for all rows; JSON has it once, beside the rows
    bool identifies_row = false;  // model, recipe, GPU, ...
};

/// A line of a breakdown: "optimizer_state", 4.0 GiB.
struct PlanPart {
    std::string name;
    std::string text;
};

/// What the GPU holds at the peak, with sums; empty if the row has no memory.
std::vector<PlanPart> memory_parts(const PlanRow& row);
/// What a step spends its time on; empty if the row has no times.
std::vector<PlanPart> time_parts(const PlanRow& row);

struct PlanViewRow {
    PlanRow row;
    std::vector<Cell> cells;  // one per column
};

/// A sentence and the rows that it is about.
struct PlanSentence {
    std::string rows;  // "tempo, t4": the fewest columns that select the rows; empty: all rows
    std::string text;
};

struct PlanView {
    std::vector<PlanColumn> columns;  // in the order of the CSV file
    std::vector<PlanViewRow> rows;
    std::string environment;                // the software environment that was asked for
    std::string common;                     // what all rows share: "bert-large, fp16"
    std::string batch;                      // of memory and step: "the largest batch that fits"
    TextTable table;                        // a row per row; without the columns in `common`
    std::vector<PlanSentence> reasons;      // why rows do not fit or are not supported
    std::vector<PlanSentence> assumptions;  // of the rows that are ok

    /// The cell of a column; throws std::out_of_range where no column has this id.
    const Cell& cell(std::size_t row, std::string_view column_id) const;
};

PlanView build_plan_view(const Plan& plan, const PlanRequest& request);

// ---- what `plan --auto` adds: the recipes among which each row chose ---------------------------

/// JSON keys and CSV headers.
const std::vector<TableColumn<FrontierPoint>>& frontier_columns();

/// The ends, the chosen point with its neighbours, and some points between.
TextTable frontier_table(const std::vector<FrontierPoint>& frontier);

/// The rows of the chosen recipes.
PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request);

}  // namespace profiler
