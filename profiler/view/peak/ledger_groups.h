#pragma once

#include "profiler/view/peak/ledger_view.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// The rows of a ledger in groups, and which of them an op has made or saves.
namespace profiler {

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

struct LedgerMarks {
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

LedgerMarks mark_rows(const LedgerView& view, const LedgerMarkRequest& request);

}  // namespace profiler
