#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/memory/timeline_view.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// What happened in a selected range of time, in A and in B: memory at its ends and at its highest,
/// bytes allocated and freed, and the tensors and ops that account for them.
namespace profiler {

struct RangeRequest {
    Steps steps;
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    std::shared_ptr<const Alignment> alignment;  // of A and B

    friend bool operator==(const RangeRequest&, const RangeRequest&) = default;
};

/// A line of a table with the columns A, B and B - A.
struct RangeRow {
    std::string name;         // "live at the start", "dropped_probs ×24", "aten::bmm"
    std::string module_path;  // of a tensor; "encoder.layer.*.attention" for one of many layers
    Category category = Category::kUnknown;
    std::array<int64_t, 2> values{};   // bytes or ns
    std::array<std::string, 2> texts;  // "64.0 MiB"; "–" for a trace without it
    std::string difference_text;       // "-64.0 MiB", "–"; empty with one trace
    int64_t difference = 0;            // B - A
    Id<Allocation> allocation;         // the largest one of a tensor, in the trace below
    bool in_b = false;
    std::vector<RangeRow> parts;  // of a tensor that stands in many layers: a row for each
};

struct RangeView {
    static constexpr std::size_t kMostRows = 8;
    static constexpr std::size_t kMostParts = 256;  // of one row

    std::string phase_text;  // "forward of step 1 to backward of step 1", in A; may be empty
    bool has_other = false;
    bool counts_kernels = false;        // times of ops are those of their kernels and copies
    std::vector<RangeRow> figures;      // duration and memory
    std::vector<RangeRow> held;         // tensors at its end, summed over layers: those that differ
                                        // between A and B, or of one trace the largest
    std::vector<RangeRow> tensors;      // the same of what is allocated, most bytes first
    std::vector<RangeRow> ops_by_time;  // longest first
    std::vector<RangeRow> ops_by_bytes;
};

/// O(n) for n events of the traces. A range that is empty or that no clock can hold gives a view
/// without rows.
RangeView build_range_view(const RangeRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

/// Rows of a range's tables with A, B and B - A. `unit` ends the names of the columns: "bytes".
DataTable range_data(const RangeView& view, const std::vector<RangeRow>& rows,
                     const std::string& unit);
/// Its figures: durations and bytes, each with its unit.
DataTable range_figures_data(const RangeView& view);

}  // namespace profiler
