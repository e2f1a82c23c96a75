#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/time_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What the Memory timeline draws for one time window and pixel width: per trace one column per
/// pixel, stacked by category, with the allocated and reserved lines, phases, steps and the peak.
///
/// Two traces share one axis, that of the first. Aligned by phases, the second one's time is
/// stretched piecewise so that its phases and modules start with the first one's; "where in
/// forward" is then the same place in both, although the recipes differ in speed.
namespace profiler {

struct TimelineRequest {
    Steps steps;
    std::array<std::string, 2> names;  // "A  original"
    double start_ns = 0;               // window, on the first trace's clock
    double end_ns = 0;
    int width_px = 0;
    std::shared_ptr<const Alignment> alignment;  // of A and B

    friend bool operator==(const TimelineRequest&, const TimelineRequest&) = default;
};

struct PhaseBand {
    PhaseKind kind = PhaseKind::kForward;
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    std::string text;  // "forward", with its own duration: "forward 412 ms"
};

struct StepBand {
    double start_ns = 0;
    double end_ns = 0;
    std::string text;  // "step 1"
};

struct PeakMarker {
    double time_ns = 0;  // on the shared axis
    int64_t bytes = 0;
    std::string text;  // "peak 24.5 GiB, backward of step 2"
    /// What the peak is with uneven experts (ExpertRouting); 0: not known.
    int64_t uneven_bytes = 0;
};

/// The request that memory ran out for: it would have lain on top of what was allocated.
struct FailedRequest {
    double time_ns = 0;  // on the shared axis
    int64_t allocated_bytes = 0;
    int64_t requested_bytes = 0;
    std::string text;  // "asked 5.59 GiB (train.py:14, nll_loss)"
};

/// One vector per quantity, with one element per pixel column. Column i covers [edge_ns[i],
/// edge_ns[i + 1]) and shows the instant of its highest total. Edges lie on multiples of the column
/// width, so that columns keep their content while the window pans.
struct TimelineTrace {
    std::string name;
    double start_ns = 0;  // of the capture, on the shared axis; beyond it all columns are 0
    double end_ns = 0;
    std::vector<double> edge_ns;  // on the shared axis; columns + 1
    /// Top of each category's layer in bytes, by Category, stacked in kCategoryStackOrder.
    std::array<std::vector<double>, kCategoryNames.size()> top_bytes;
    std::vector<double> allocated_bytes;  // = top of the highest layer
    std::vector<double> reserved_bytes;
    std::vector<PhaseBand> phases;  // those that meet the window
    std::vector<StepBand> steps;
    std::vector<PeakMarker> peaks;                // empty or one
    std::optional<PeakMarker> out_of_memory;      // where memory ran out, if it did in the window
    std::optional<FailedRequest> failed_request;  // there, as far as the trace knows it
    double limit_bytes = 0;     // of the memory; 0: not known, or too far above the peak to draw
    std::string limit_text;     // "limit 16.0 GiB"
    bool has_reserved = false;  // reserved differs from allocated somewhere; never true on the CPU
    std::string summary;  // "peak 24.5 GiB of 78.7 GiB for tensors"; ", out of memory" if it was

    std::size_t column_count() const { return allocated_bytes.size(); }
    /// Whether the trace was being recorded during all of a column.
    bool covers(std::size_t column) const {
        return start_ns <= edge_ns[column] && edge_ns[column + 1] <= end_ns;
    }
};

struct TimelineView {
    std::vector<TimelineTrace> traces;
    std::string workload;  // "bert-large, 3 layers, ..."; both workloads if they differ
    std::vector<std::string>
        origin;                      // "measured on the CPU (AMD EPYC), 2 threads", without repeats
    std::vector<std::string> notes;  // problems: an incomplete capture, a busy machine
    /// Second minus first for each column, 0 where one of them has ended; none for one trace. Steps
    /// that both make in neighbouring columns make none.
    std::vector<double> difference_bytes;
    std::vector<Category> categories;  // categories in the window, in kCategoryStackOrder
    double max_bytes = 0;  // over all traces and the whole capture, so that the axis stays steady
    double max_difference_bytes = 0;                 // largest magnitude in the window
    TimeAlignment alignment = TimeAlignment::kTime;  // the alignment that was used
    std::string alignment_note;  // why the phases could not be aligned; empty when they were
};

TimelineView build_timeline_view(const TimelineRequest& request);
/// One trace in the window of a request, of which the steps do not matter. `map` leads from the
/// shared axis to the clock of the trace.
TimelineTrace build_timeline_trace(const StepIndex& step, const TimeMap& map,
                                   const TimelineRequest& window);
/// The categories that have bytes in some column, in kCategoryStackOrder.
std::vector<Category> categories_in(std::span<const TimelineTrace* const> traces);

/// "backward of step 2"; empty outside of all phases. `time_ns` is on the trace's own clock.
std::string phase_text_at(const Trace& trace, int64_t time_ns);

/// The range of the shared axis that holds all steps of a request. Behind a request that failed
/// there is room to draw it.
struct TimeRange {
    double start_ns = 0;
    double end_ns = 0;

    friend bool operator==(const TimeRange&, const TimeRange&) = default;
};
TimeRange fit_timeline(const TimelineRequest& request);

/// One instant for a tooltip: total, phase, and a row per category.
struct TimelineReadout {
    struct Row {
        Category category = Category::kUnknown;
        int64_t bytes = 0;
        std::string text;   // "12.4 GiB"
        std::string share;  // "41.3 %"
    };
    std::string time_text;        // "1.204 s", on the trace's own clock
    std::string total_text;       // "24.5 GiB"
    std::string phase_text;       // "backward of step 2"; empty outside
    std::string annotation_text;  // "epoch 1 > Optimizer.step#AdamW.step"; empty outside
    std::vector<Row> rows;        // from the top of the stack down, without empty categories
};
/// Empty for a trace that the request does not have.
TimelineReadout read_timeline(const TimelineRequest& request, std::size_t index, double time_ns);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each pixel column of one trace: the instant of its highest total.
DataTable timeline_data(const TimelineTrace& trace);

// The ribbon of modules below the memory of a trace: layers, and the modules in them, for one time
// window and pixel width. Spans narrower than two pixels are merged with their neighbours in the
// same pixel, so that a million spans cost as much as the window has pixels.

struct RibbonBlock {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    std::size_t span = 0;  // the first one, in the track of its level
    int64_t count = 1;     // number of merged spans
    PhaseKind phase = PhaseKind::kForward;
    int shade = 0;            // 0 or 1; differs between neighbours that look alike otherwise
    int64_t layer = -1;       // its number, if it is one
    std::string label;        // "layer 12", "attention"; empty for merged spans
    std::string short_label;  // "12"; else as the label
};

struct RibbonTrace {
    std::array<std::vector<RibbonBlock>, 2> levels;  // by ModuleLevel, in the order of time

    bool empty() const { return levels[0].empty(); }
};

struct RibbonView {
    std::vector<RibbonTrace> traces;
    bool has_modules = false;  // some trace has modules, whether in the window or not
};

using RibbonRequest = TimelineRequest;

RibbonView build_ribbon_view(const RibbonRequest& request);

/// Everything known about one span, for a tooltip. Empty for a span that the track does not have.
struct RibbonReadout {
    std::string title;                                      // "encoder.layer.12.attention"
    std::vector<std::pair<std::string, std::string>> rows;  // "kept", "96.0 MiB"
    int64_t layer = -1;
};
RibbonReadout read_ribbon(const StepIndex& source, ModuleLevel level, std::size_t span);

}  // namespace profiler
