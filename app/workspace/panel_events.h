#pragma once

#include "app/workspace/capture_session.h"
#include "app/workspace/document.h"
#include "profiler/analysis/activity.h"
#include "profiler/view/ledger_view.h"
#include "profiler/view/timeline_view.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What panels share and what they ask for. A panel draws from const views and returns events;
/// the workspace applies them after all panels are drawn.
namespace app {

/// How a trace is told apart in every panel: name and colour of its column in the comparison.
struct DocumentLook {
    std::string name;  // "tempo"; of two files of one recipe "tempo (before)"
    size_t color = 0;  // for recipe_color
};

/// A tensor picked in the ledger, as other panels show it. Storage and `in_b` name its row,
/// whatever the ledger's order and filter.
struct SelectedTensor {
    profiler::Id<profiler::Storage> storage;  // in the trace of B when `in_b`
    std::string name;
    std::string module_path;
    int64_t size_bytes = 0;
    bool in_b = false;               // kept by B only
    std::optional<double> alloc_ns;  // on the shared time axis
    std::optional<double> free_ns;   // none: lives to the end
    int64_t num_kernels = 0;         // that ran while it lived; 0 on the CPU
};

/// A call, a kernel or a copy under the mouse when it was clicked.
struct PickedActivity {
    bool in_b = false;
    profiler::ActivityId id;
};

/// The same as other panels show it.
struct SelectedActivity {
    profiler::ActivityId id;
    bool in_b = false;
    std::string name;           // short: "aten::addmm", "volta_sgemm_128x32_nt"
    profiler::TimeRange range;  // on the shared time axis
};

/// One for the whole window: selecting anywhere highlights everywhere.
struct Selection {
    DocumentPtr a;        // the trace looked at; null when none is open
    DocumentPtr b;        // beside it; null: none
    DocumentLook look_a;  // while there is an A
    DocumentLook look_b;
    bool chosen = false;  // by the user, not by default: later files do not change it
    std::optional<profiler::Category> category;
    std::optional<profiler::TimeRange> range;  // on the shared time axis, that of A
    std::optional<SelectedTensor> tensor;
    std::optional<SelectedActivity> activity;
};

/// No part of the time axis that is shown is shorter: below, columns are single events.
inline constexpr double kMinWindowNs = 1000;

/// The part of the time axis that is visible, and how wide it is drawn.
struct TimeWindow {
    double start_ns = 0;
    double end_ns = 0;
    int width_px = 0;
    profiler::TimeAlignment alignment = profiler::TimeAlignment::kPhases;

    friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

/// What the ledger shows and in which order.
struct LedgerQuery {
    std::string filter;
    profiler::LedgerColumn sort_by = profiler::LedgerColumn::kSize;
    bool descending = true;
    bool only_differences = false;
    bool compare = true;  // B beside A, when there is a B

    friend bool operator==(const LedgerQuery&, const LedgerQuery&) = default;
};

struct PanelEvents {
    // files
    std::vector<std::filesystem::path> open;
    DocumentPtr close;
    bool ask_for_files = false;  // show the dialog
    bool cancel_loading = false;
    // selection; a null document clears
    std::optional<DocumentPtr> set_a;
    std::optional<DocumentPtr> set_b;
    std::optional<size_t> column;  // of the comparison: its trace becomes B, unless it is A
    std::optional<profiler::Category> category;  // toggles
    std::optional<std::optional<profiler::TimeRange>> range;
    std::optional<profiler::LedgerViewRow> tensor;
    bool clear_tensor = false;
    std::optional<PickedActivity> activity;
    bool clear_activity = false;
    // views
    std::optional<TimeWindow> time_window;
    bool fit_time = false;
    std::optional<int> kernels_width_px;  // of the plot inside the Kernels panel
    std::optional<LedgerQuery> ledger_query;
    // capture
    std::optional<CaptureForm> start_capture;
    bool cancel_capture = false;
    // panels
    bool show_capture = false;
};

}  // namespace app
