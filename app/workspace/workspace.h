#pragma once

#include "app/widgets/toasts.h"
#include "app/workspace/capture_session.h"
#include "app/workspace/document.h"
#include "app/workspace/document_loader.h"
#include "app/workspace/export_queue.h"
#include "app/workspace/latest_task.h"
#include "app/workspace/panel_events.h"
#include "profiler/charts/charts.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/ledger_view.h"
#include "profiler/view/time_map.h"
#include "profiler/view/timeline_view.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the window shows: open traces, one selection shared by all panels, and the views built
/// from them off the frame thread.
///
///     each frame   update()          takes what finished meanwhile, starts what has become stale
///                  panels draw       from const views; they return events
///                  apply(events)     after all panels are drawn
namespace app {

class Workspace {
public:
    // ---- files ----------------------------------------------------------------------------
    /// Starts loading; a folder stands for the traces in it. Files already open are loaded again.
    void open(const std::vector<std::filesystem::path>& files);
    void add(DocumentPtr document);
    void close(const DocumentPtr& document);
    void cancel_loading() { loader_.cancel(); }
    const std::vector<DocumentPtr>& documents() const { return documents_; }
    /// Name and colour of each document, in the same order.
    const std::vector<DocumentLook>& looks() const { return looks_; }
    std::optional<DocumentLoader::Progress> loading() const { return loader_.progress(); }

    // ---- captures ------------------------------------------------------------------------
    const CaptureSession& capture() const { return capture_; }

    // ---- selection ------------------------------------------------------------------------
    const Selection& selection() const { return selection_; }
    void set_a(DocumentPtr document);
    void set_b(DocumentPtr document);  // null: look at A alone
    void swap_a_and_b();
    void clear_selection();  // category, time range, tensor, op; A and B stay
    /// Shows all of the time axis.
    void fit_time();

    // ---- views: null until there is something to show; always of the A and B selected ------
    const profiler::CompareView* compare_view() const { return compare_view_.get(); }
    const profiler::TimelineView* timeline_view() const { return timeline_view_.get(); }
    const profiler::ActivityView* activity_view() const { return activity_view_.get(); }
    const profiler::LedgerView* ledger_view() const { return ledger_view_.get(); }
    /// Why a view could not be built; empty when nothing went wrong.
    const std::string& timeline_error() const { return timeline_error_; }
    const std::string& activity_error() const { return activity_error_; }
    const std::string& ledger_error() const { return ledger_error_; }
    /// The document behind a column of the comparison, the captured step before its sweep.
    DocumentPtr document_of_column(size_t column) const;
    profiler::TimelineReadout read_timeline(size_t source, double time_ns) const;
    const profiler::TimeRange& time_limits() const { return time_limits_; }
    const TimeWindow& time_window() const { return time_window_; }
    const LedgerQuery& ledger_query() const { return ledger_query_; }

    // ---- export: off the frame thread; a notice says how it went ---------------------------
    /// SVG, PDF, PNG or HTML by the file's extension.
    void export_comparison(const std::filesystem::path& file, bool dark);
    /// The part of the time axis that is shown.
    void export_timeline(const std::filesystem::path& file, bool dark);

    // ---- events ---------------------------------------------------------------------------
    void update();
    void apply(const PanelEvents& events);

    /// Whether something that panels show has been replaced since the last call: tables and
    /// layouts then need a few frames to settle.
    bool take_changed() { return std::exchange(changed_, false); }

    /// Nothing loads, nothing is stale: pictures may be compared.
    bool settled() const;

    /// Sentences for the user since the last call; and files that have just opened.
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
    std::vector<std::filesystem::path> take_opened() { return std::exchange(opened_, {}); }
    void notify(profiler::Severity severity, std::string text);

private:
    struct CompareResult {
        std::shared_ptr<const profiler::Comparison> comparison;  // null: nothing is open
        std::shared_ptr<const profiler::CompareView> view;
    };
    /// A view, and whom it is of: by the time it is finished, A and B may be others.
    template <typename View>
    struct ViewOf {
        DocumentPtr a;
        DocumentPtr b;
        std::shared_ptr<const View> view;
    };
    template <typename View>
    using ViewTask = LatestTask<ViewOf<View>>;

    void take_loaded();
    void take_captured();
    void take_views();
    template <typename View>
    void take_view(ViewTask<View>& task, std::shared_ptr<const View>& view, std::string& error);
    void start_stale_views();
    void documents_changed();
    void selection_changed();
    void time_axis_changed();
    void choose_defaults();
    DocumentPtr find_document(const std::function<bool(const Document&)>& is_wanted) const;
    void update_looks();
    /// Moves the time window to a tensor that lives outside of it.
    void reveal(const SelectedTensor& tensor);
    void select_row(const profiler::LedgerViewRow& row);
    void select_activity(const PickedActivity& picked);
    /// The time axis shows another part: views on it are built again.
    void time_window_changed();
    profiler::TimelineRequest timeline_request() const;
    void start_export(std::filesystem::path file,
                      std::function<models::Result<void>(const profiler::ChartOptions&)> write);

    std::vector<DocumentPtr> documents_;
    std::vector<DocumentLook> looks_;
    DocumentLoader loader_;
    Selection selection_;
    TimeWindow time_window_;
    int kernels_width_px_ = 0;  // 0: the Kernels panel has not been seen yet
    std::shared_ptr<const profiler::Alignment> alignment_;  // of A and B; null: nothing to align
    profiler::TimeRange time_limits_;
    LedgerQuery ledger_query_;

    bool compare_stale_ = false;
    bool timeline_stale_ = false;
    bool activity_stale_ = false;
    bool ledger_stale_ = false;
    std::shared_ptr<const profiler::Comparison> comparison_;
    std::shared_ptr<const profiler::CompareView> compare_view_;
    std::shared_ptr<const profiler::TimelineView> timeline_view_;
    std::shared_ptr<const profiler::ActivityView> activity_view_;
    std::shared_ptr<const profiler::LedgerView> ledger_view_;

    std::string timeline_error_;
    std::string activity_error_;
    std::string ledger_error_;
    bool changed_ = false;

    CaptureSession capture_;
    std::vector<Notice> notices_;
    std::vector<std::filesystem::path> opened_;

    ExportQueue exports_;
    LatestTask<CompareResult> compare_task_{"Comparing the traces"};
    ViewTask<profiler::TimelineView> timeline_task_{"Drawing the timeline"};
    ViewTask<profiler::ActivityView> activity_task_{"Laying out what ran"};
    ViewTask<profiler::LedgerView> ledger_task_{"Listing what backward keeps"};
};

}  // namespace app
