#pragma once

#include "profiler/planner/plan.h"
#include "profiler/view/compare_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// A plan as rows of typed cells under one list of columns. The table, CSV and JSON of
/// `temposcope plan` and the window all read this list, so a column has the same name, unit and
/// text everywhere.
namespace profiler {

enum class PlanUnit : uint8_t {
    kText,
    kCount,
    kBytes,
    kBytesPerSecond,
    kNanoseconds,
    kSequencesPerSecond,
    kTflops,
    kYesNo,
};

/// Without a value where the row has none: a row that does not fit has no step time.
using PlanCell = std::variant<std::monostate, std::string, int64_t, double, bool>;

struct PlanColumn {
    std::string id;     // key in JSON, header in CSV: "peak_reserved_bytes"
    std::string title;  // over the column of a table: "reserved"
    PlanUnit unit = PlanUnit::kText;
    std::string group = {};       // the object of a JSON row that holds the key: "terms"
    bool is_of_request = false;   // the same for all rows; JSON has it once, beside the rows
    bool identifies_row = false;  // model, recipe, GPU, ...
};

/// A line of a breakdown: "optimizer_state", 4.0 GiB.
struct PlanPart {
    std::string name;
    std::string text;
};

struct PlanViewRow {
    PlanStatus status = PlanStatus::kOk;
    std::vector<PlanCell> cells;         // one per column
    std::vector<PlanPart> memory_parts;  // what the GPU holds at the peak, with sums
    std::vector<PlanPart> time_parts;    // what a step spends its time on
    std::vector<PlanPoint> curve;
    std::vector<std::string> notes;  // assumptions and other notes
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
    const PlanCell& cell(std::size_t row, std::string_view column_id) const;
};

PlanView build_plan_view(const Plan& plan, const PlanRequest& request);

/// "14.0 MiB", "12.9", "–" without a value.
std::string text_of(PlanUnit unit, const PlanCell& cell);

/// The row's largest batch: "46", "≥ 1,048,576" where the search ended, "none" where not
/// even batch 1 fits, "–" where it is not known.
std::string max_batch_text(const PlanRow& row);

/// What goes behind max_batch_text: ", by tensor size" where that limits the batch and not memory,
/// else empty.
std::string max_batch_note(const PlanRow& row);

}  // namespace profiler
