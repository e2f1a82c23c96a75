#pragma once

#include "app/workspace/frontier_plans.h"
#include "app/workspace/open_comparison.h"
#include "app/workspace/queries.h"
#include "app/workspace/ranks_of_run.h"
#include "app/workspace/searcher.h"
#include "app/workspace/time_axis.h"
#include "app/workspace/view_slot.h"
#include "profiler/view/advice/advice_view.h"
#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/programs/pair_view.h"
#include "profiler/view/ranks/ranks_view.h"
#include "profiler/view/selected/inspector_view.h"
#include "profiler/view/selected/range_view.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What each slot should show now, from what the user has opened, selected and typed.
namespace app {

/// What requests are made from: what the window shows, or what it would show with another A and B.
struct WorkspaceState {
    const std::vector<DocumentPtr>& documents;
    const Selection& selection;
    const TimeAxis& time;
    const PanelQueries& queries;
    const FrontierPlans& frontier_plans;
    const std::optional<StepPlanRequest>& usual_request;
    std::shared_ptr<const profiler::MarksView> marks;  // null: nothing is marked
    std::shared_ptr<const RanksOfRun> rank_run;        // null: not made yet
    std::shared_ptr<const UsualPlan> usual_plan;       // null: not made yet
    std::string recipe_being_planned;                  // for the prediction; empty: none
    std::vector<profiler::RemedyTrial> trials;         // of A's program
    const profiler::PlannerData& planner_data;
};

/// Which of the repeatable panels have an open window with a certain number.
struct OpenPanels {
    bool ledger = false;
    bool flame = false;
    bool blocks = false;
    bool inspector = false;
};

/// The same for the views of one window (WindowViews).
struct WindowState : WorkspaceState {
    const WindowQueries& own;
    const OpenPanels& open;
    /// Where the chosen allocator settings would put segments and blocks; null: not known.
    std::shared_ptr<const profiler::SegmentLayout> replayed;
};

// ---- what slots should show -----------------------------------------------------------------

/// A and B as far as they have a recorded step. Without A there is no B: the time axis is A's.
profiler::Steps recorded_steps(const Selection& selection);

std::optional<ViewOrder<profiler::AdviceRequest>> order_advice(const WorkspaceState& state);
std::optional<ViewOrder<profiler::PairRequest>> order_pair(const WorkspaceState& state);
std::optional<ViewOrder<profiler::TimelineRequest>> order_timeline(const WorkspaceState& state);
std::optional<ViewOrder<profiler::RibbonRequest>> order_ribbon(const WorkspaceState& state);
std::optional<ViewOrder<profiler::KernelsRequest>> order_kernels(const WorkspaceState& state);
std::optional<ViewOrder<profiler::MarksRequest>> order_marks(const WorkspaceState& state);
std::optional<ViewOrder<profiler::LayerRequest>> order_layers(const WorkspaceState& state);
std::optional<ViewOrder<StepPlanRequest>> order_planner(const WorkspaceState& state);
std::optional<ViewOrder<profiler::LedgerRequest>> order_ledger(const WindowState& window);
std::optional<ViewOrder<profiler::FlameRequest>> order_flame(const WindowState& window);
std::optional<ViewOrder<profiler::RangeRequest>> order_range(const WindowState& window);
std::optional<ViewOrder<profiler::InspectorRequest>> order_inspector(const WindowState& window);
std::optional<ViewOrder<profiler::BlocksRequest>> order_blocks(const WindowState& window);
std::optional<ViewOrder<profiler::LiveBlocksRequest>> order_live_blocks(const WindowState& window);
std::optional<ViewOrder<profiler::SegmentMapRequest>> order_segments(const WindowState& window);
std::optional<ViewOrder<profiler::WhatIfRequest>> order_what_if(const WindowState& window);

/// A request without the peaks of the cards, which are looked up on the slot's thread.
struct MovementOrder {
    profiler::Steps steps;
    MovementQuery query;
    std::string usual_gpu;                             // id: for logical ops of a CPU's trace
    const std::vector<profiler::Gpu>* gpus = nullptr;  // borrowed: the catalogue

    friend bool operator==(const MovementOrder&, const MovementOrder&) = default;
};
std::optional<ViewOrder<MovementOrder>> order_movement(const WorkspaceState& state);
profiler::MovementView build_movement(const MovementOrder& order);

/// The timeline of A, and of B if it has a recorded step, in `window`. Has no steps when A holds no
/// recorded step.
profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window);
/// What it takes to compare the layers of two documents; `b` may be null.
profiler::LayerRequest layer_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const profiler::LayerRange& layers);
/// What the Inspector of a window describes: what it has pinned, or what is selected.
inline const Selection& inspected(const InspectorQuery& query, const Selection& selection) {
    return query.pinned ? *query.pinned : selection;
}

/// The trace that the Blocks panel draws: 0 is A, also when B was wanted and there is none.
size_t shown_trace(const Selection& selection, const BlocksQuery& query);
/// What the user chose; else by category, or by line of code in a snapshot without ops.
profiler::BlockColoring coloring_of(const Selection& selection, const BlocksQuery& query);
/// Selection::moment_ns, or the peak of A.
double moment_of(const Selection& selection);

std::optional<ViewOrder<CompareRequest>> order_comparison(const WorkspaceState& state);
/// Disappears when other documents are open: a plan of others would leave recipes out. While the
/// recipe of B is being planned, it waits for that.
std::optional<ViewOrder<CompareRequest>> order_planned_comparison(const WorkspaceState& state);
std::optional<ViewOrder<StepPlanRequest>> order_usual_plan(const WorkspaceState& state);

/// The step of the Planner with every recipe. First those of A, B and open traces of the step, and
/// those between the two selected dots.
StepPlanRequest frontier_request(const WorkspaceState& state);

std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state);

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state);
std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state);
std::optional<ViewOrder<SearchRequest>> order_search(const WorkspaceState& state);

}  // namespace app
