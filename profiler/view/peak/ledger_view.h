#pragma once

#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/view/theme.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

/// What the Ledger panel draws: every tensor saved for backward as a row of text, sorted and
/// filtered, beside the figure of the closed form and the same tensor of a second recipe. The rows
/// can be grouped: a tree of layers and modules, or the same tensor of all layers.
namespace profiler {

enum class LedgerColumn : uint8_t {
    kTensor,
    kModulePath,
    kMadeBy,
    kShape,
    kDType,
    kCategory,
    kSize,
    kShare,
    kLifetime,
    kSavedBy,
    kClosedForm,
    kOtherSize,   // of the second ledger
    kDifference,  // second minus first
    kOp,          // the first that saves it: for other programs alone
};
inline constexpr std::size_t kNumLedgerColumns = 13;  // of the panel

enum class LedgerGrouping : uint8_t {
    kTensors,  // a flat list
    kLayers,   // layer, module, tensor
    kKinds     // the same tensor of all layers
};

/// In which of two ledgers a tensor stands.
enum class Presence : uint8_t {
    kSame,         // in both with equal bytes (and every row when there is one ledger)
    kChanged,      // in both, another size
    kDisappeared,  // only in the first: the second recipe does not need it
    kAdded         // only in the second: the second recipe needs it instead
};

/// A range on the own clock of a trace.
struct LedgerSpan {
    int64_t start_ns = 0;
    int64_t end_ns = 0;

    friend bool operator==(const LedgerSpan&, const LedgerSpan&) = default;
};

struct LedgerRequest {
    Steps steps;
    /// On the clock of each step: only tensors that are saved at some time in it.
    std::array<std::optional<LedgerSpan>, 2> spans;
    std::string filter;  // rows that contain every word of it, in any column and any case
    LedgerColumn sort_by = LedgerColumn::kSize;
    bool descending = true;
    bool only_differences = false;  // hide Presence::kSame
    LedgerGrouping grouping = LedgerGrouping::kTensors;

    friend bool operator==(const LedgerRequest&, const LedgerRequest&) = default;
};

/// The ops behind a row in one trace.
struct LedgerRowOps {
    Id<Op> maker;
    std::vector<Id<Op>> savers;
};

struct LedgerViewRow {
    std::string tensor;
    std::string module_path;
    std::string op;       // the first that saves it
    std::string made_by;  // the op that allocated its storage
    std::string shape;
    std::string dtype;
    Category category = Category::kUnknown;
    std::string saved_by;  // every op that saves it, separated by ", "
    int64_t layer = -1;
    std::string layer_path;  // "encoder.layer.3"; empty outside of layers

    int64_t size_bytes = 0;  // first ledger; 0 when added
    std::string size_text;   // "64.0 MiB"; "–" when absent
    std::string exact_text;  // "67,108,864 B"
    double share = 0;        // of the first ledger's total
    std::string share_text;
    int64_t lifetime_ns = -1;
    std::string lifetime_text;

    std::optional<int64_t> closed_form_bytes;
    std::string closed_form_text;  // "eT = 64.0 MiB"; empty when the layer has none
    bool differs_from_closed_form = false;

    Presence presence = Presence::kSame;
    bool is_in_span = true;  // in the span of a trace that has the tensor
    int64_t other_bytes = 0;
    std::string other_text;
    int64_t difference_bytes = 0;
    std::string difference_text;  // "-64.0 MiB"

    Id<Storage> storage;  // in the first trace; of the second when added
    Id<Allocation> allocation;
    std::array<LedgerRowOps, 2> ops;  // in the first and in the second trace
};

/// Rows that belong together, and groups inside of it.
struct LedgerGroup {
    LedgerViewRow sums;  // `tensor` is its name: "encoder.layer.3", "dropped_probs ×24"
    std::string id;      // the same in every view that has the group
    int32_t depth = 0;
    int64_t count = 0;                // tensors, also those of inner groups
    std::vector<std::size_t> groups;  // in LedgerView::groups
    std::vector<std::size_t> rows;    // in LedgerView::rows
};

/// What a middle layer saves, beside its closed form.
struct ClosedFormLine {
    std::string text;  // "Layer 1 saves 140 B for backward; the closed form en+eT says 150 B."
    bool is_equal = false;
};

struct LedgerView {
    std::vector<LedgerViewRow> rows;
    bool has_other = false;
    bool has_closed_form = false;
    std::vector<LedgerGroup> groups;      // empty for a flat list
    std::vector<std::size_t> top_groups;  // the outermost ones, in the order of the table
    std::size_t row_count_total = 0;      // number of rows before the filter, added ones included
    int64_t total_bytes = 0;
    int64_t other_total_bytes = 0;
    int64_t shown_difference_bytes = 0;  // B minus A, over the rows that the filter leaves
    int64_t disappeared_bytes = 0;       // the same
    int64_t added_bytes = 0;
    /// "412 tensors, 14.2 GiB"; filtered: "12 of 412 tensors, ..."; "A 412 tensors, ...; B ..."
    std::string total_text;
    std::string comparison_text;  // "B saves 5.10 GiB less for backward: 48 tensors ..."
    std::string span_text;        // "Only what is saved in the selected range, ..."; or empty
    std::array<std::optional<ClosedFormLine>, 2> closed_forms;  // of both ledgers
};

LedgerView build_ledger_view(const LedgerRequest& request);

/// Less than, equal to or greater than 0, like strcmp.
int compare_rows(const LedgerViewRow& a, const LedgerViewRow& b, LedgerColumn column);

/// Fills in sizes, presence and their texts.
void set_sizes(LedgerViewRow& row, Presence presence, int64_t size_bytes, int64_t other_bytes);
void set_share(LedgerViewRow& row, int64_t total_bytes);

/// Its name, unit and value. Keys are those of `info --ledger --json` where there is one.
const TableColumn<LedgerViewRow>& table_column(LedgerColumn column);
/// Whether the view has values for it.
bool applies(const LedgerView& view, LedgerColumn column);

/// `columns`: the shown columns, in their order; empty: all columns of the panel.
DataTable ledger_data(const LedgerView& view, std::span<const LedgerColumn> columns = {});
/// The rows for the clipboard; `only`: this one alone.
DataTable copied_rows(const LedgerView& view, std::optional<std::size_t> only = {});

// ---- groups of rows ----------------------------------------------------------------------------

/// Fills in the groups of `view` from its rows, as `request.grouping` asks.
void group_rows(LedgerView& view, const LedgerRequest& request);

/// A line of the table: a group, or a row.
struct LedgerLine {
    static constexpr std::size_t kNoGroup = static_cast<std::size_t>(-1);

    std::size_t group = kNoGroup;
    std::size_t row = 0;  // if it is no group
    int32_t depth = 0;
};

/// The lines of the table when the groups with these ids are open.
std::vector<LedgerLine> lines_of(const LedgerView& view, const std::set<std::string>& open);

/// The texts of a line; those of a group are its sums.
const LedgerViewRow& row_of(const LedgerView& view, const LedgerLine& line);

/// The largest size on these lines, in the first ledger; to scale bars.
int64_t largest_bytes(const LedgerView& view, const std::vector<LedgerLine>& lines);

// ---- the selected op --------------------------------------------------------------------------

struct LedgerMark {
    bool made = false;   // the op or a call in it allocated the tensor
    bool saved = false;  // the op, a call in it or its forward op saves it
};

struct RowsOfOp {
    std::vector<LedgerMark> rows;    // by the rows of the view
    std::vector<LedgerMark> groups;  // by its groups: one of their rows has the mark
    std::string text;  // "aten::bmm made 1 of these tensors and saves 2."; empty without marks
};

struct LedgerMarkRequest {
    const Trace* trace = nullptr;  // that of `op`
    bool in_b = false;
    Id<Op> op;
    Id<Op> forward;  // of a backward op
};

RowsOfOp mark_rows(const LedgerView& view, const LedgerMarkRequest& request);

}  // namespace profiler
