#pragma once

#include "app/workspace/capture_session.h"
#include "app/workspace/selection.h"
#include "app/workspace/time_axis.h"
#include "app/workspace/view_requests.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace app {

/// What the user asked for in a panel. A panel draws from the const workspace and returns events;
/// the workspace applies them after all panels have been drawn.
struct PanelEvents {
    // files
    std::vector<std::filesystem::path> open;
    DocumentPtr close;
    bool ask_for_files = false;  // show the file dialog
    bool open_examples = false;
    bool cancel_loading = false;
    // selection; a null document means "none"
    std::optional<DocumentPtr> set_a;
    std::optional<DocumentPtr> set_b;
    std::optional<size_t> column;  // of the comparison: its trace becomes B, unless it is A already
    std::optional<profiler::Category> category;  // select it, or no category if it is selected
    std::optional<std::optional<profiler::TimeRange>> range;
    std::optional<std::optional<double>> moment_ns;             // on the shared time axis
    std::optional<std::optional<profiler::LayerRange>> layers;  // none: a middle one
    std::optional<PickedTensor> tensor;
    bool clear_tensor = false;
    std::optional<PickedActivity> activity;
    bool clear_activity = false;
    std::optional<std::optional<profiler::CallMarks>> marks;  // an inner none: mark nothing
    int history_step = 0;  // -1: the selection before; 1: the one after, if the user went back
    // views
    std::optional<TimeWindow> time_window;
    std::optional<double> cursor_ns;  // the time under the mouse
    bool fit_time = false;
    std::optional<int> kernels_width_px;  // width of the plot in the Kernels panel
    std::optional<int> lane_width_px;     // width of the lane of kernels in the Memory timeline
    std::optional<PlotInsets> insets;     // of the plot in the Memory timeline
    int window = 1;                       // number of the window to which the next four belong
    std::optional<LedgerQuery> ledger_query;
    std::optional<FlameQuery> flame_query;
    std::optional<BlocksQuery> blocks_query;
    std::optional<InspectorQuery> inspector_query;
    std::optional<PlanChoice> plan_choice;
    std::optional<PlannerQuery> planner_query;
    std::optional<FrontierQuery> frontier_query;
    bool grows_frontier = false;  // the panel is in sight: plan more of its recipes
    std::optional<MovementQuery> movement_query;
    std::optional<RanksQuery> ranks_query;
    // recipes
    std::optional<std::string> try_recipe;  // to see as B; text of models::to_text
    bool predicts_ahead = false;            // make what is one switch away
    bool keep_trial = false;
    bool cancel_work = false;  // what Workspace::work names
    bool plan_again = false;   // what was cancelled
    // capture
    std::optional<CaptureForm> start_capture;
    bool cancel_capture = false;
    std::optional<PlannerQuery> fill_capture;  // put this step into the form and show it
    // panels
    bool show_capture = false;
};

}  // namespace app
