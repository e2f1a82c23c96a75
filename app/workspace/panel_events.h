#pragma once

#include "app/workspace/capture_form.h"
#include "app/workspace/document.h"
#include "app/workspace/program_jobs.h"
#include "app/workspace/queries.h"
#include "app/workspace/time_axis.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What the user asked for in a panel. A panel draws from const state and returns events; they are
/// applied after all panels have been drawn.
namespace app {

/// Which traces are open, and which of them are A and B. A null document means "none".
struct TraceEvents {
    std::vector<std::filesystem::path> open;
    DocumentPtr close;
    bool ask_for_files = false;  // show the file dialog
    bool open_examples = false;
    bool cancel_loading = false;
    std::optional<DocumentPtr> set_a;
    std::optional<DocumentPtr> set_b;
    std::optional<std::size_t> column;  // of the comparison: its trace becomes B, unless it is A
    bool keep_prediction = false;
};

/// What is selected in A and B.
struct SelectionEvents {
    std::optional<profiler::Category> category;  // select it, or no category if it is selected
    std::optional<std::optional<profiler::TimeRange>> range;
    std::optional<std::optional<double>> moment_ns;             // on the shared time axis
    std::optional<std::optional<profiler::LayerRange>> layers;  // none: a middle one
    std::optional<PickedTensor> tensor;
    bool clear_tensor = false;
    std::optional<PickedCall> call;
    bool clear_call = false;
    std::optional<std::optional<profiler::SelectedCalls>> marks;  // an inner none: mark nothing
    int history_step = 0;  // -1: the selection before; 1: the one after, if the user went back
};

/// The time axis that several panels share.
struct TimeEvents {
    std::optional<TimeWindow> window;
    std::optional<double> cursor_ns;  // the time under the mouse
    bool fit = false;
    std::optional<int> kernels_width_px;  // width of the plot in the Kernels panel
    std::optional<int> lane_width_px;     // width of the lane of kernels in the Memory timeline
    std::optional<PlotInsets> insets;     // of the plot in the Memory timeline
};

/// What one window shows, of a panel that may have several (WindowQueries).
struct WindowEvents {
    std::optional<LedgerQuery> ledger;
    std::optional<FlameQuery> flame;
    std::optional<BlocksQuery> blocks;
    std::optional<InspectorQuery> inspector;
};

/// What the other panels show (PanelQueries).
struct QueryEvents {
    std::optional<GpuForm> plan;
    std::optional<PlannerForm> planner;
    std::optional<FrontierQuery> frontier;
    bool grows_frontier = false;  // the panel is in sight: plan more of its recipes
    std::optional<MovementQuery> movement;
    std::optional<RanksQuery> ranks;
};

/// Recipes to predict and to plan.
struct RecipeEvents {
    std::optional<std::string> try_recipe;  // to see as B; text of models::to_text
    bool predicts_ahead = false;            // make what is one switch away
    bool cancel_work = false;               // what Workspace::work names
    bool plan_again = false;                // what was cancelled
};

struct CaptureEvents {
    std::optional<StepForm> start;
    bool cancel = false;
    std::optional<PlannerForm> fill;  // put this step into the form and show it
};

/// Remedies for A, and programs to run.
struct AdviceEvents {
    std::optional<profiler::ExplainTarget> target;
    std::string try_remedy;  // run A's program with this remedy, and show it as B; empty: none
    std::optional<ProgramForm> run;
    bool show_run = false;   // the dialog that runs a program
    bool show_plan = false;  // the layout that plans
};

struct PanelEvents {
    TraceEvents traces;
    SelectionEvents selection;
    TimeEvents time;
    WindowEvents window;  // of the window that is drawn
    QueryEvents queries;
    RecipeEvents recipes;
    CaptureEvents capture;
    AdviceEvents advice;
};

}  // namespace app
