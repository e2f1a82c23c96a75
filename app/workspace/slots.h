#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/frontier_plans.h"
#include "app/workspace/queries.h"
#include "app/workspace/time_axis.h"
#include "app/workspace/view_slot.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/pair_view.h"
#include "profiler/view/ranks/ranks_view.h"
#include "profiler/view/selected/inspector_view.h"
#include "profiler/view/selected/range_view.h"
#include "profiler/view/selected/search_view.h"

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

/// The slots of the workspace: one for each view that panels draw. A slot names what it does, what
/// it should show now, and how its view is built. docs/adding_a_panel.md walks through adding one.
namespace app {

// ---- what slots make their requests from ----------------------------------------------------

/// The usual recipes that no open file has, planned for the step of the open ones.
struct UsualPlan {
    PlanQuestion question;
    profiler::Plan plan;  // no rows if it could not be made
};

/// The open ranks of one run, and the values that are computed once for all of them.
struct RanksOfRun {
    std::vector<DocumentPtr> documents;  // in the order of the ranks
    profiler::RankRun run;
    profiler::TextTable peaks;
    profiler::TextTable times;  // without rows if none are known
};

/// What requests are made from: what the window shows, or what it would show with another A and B.
struct WorkspaceState {
    const std::vector<DocumentPtr>& documents;
    const Selection& selection;
    const TimeAxis& time;
    const PanelQueries& queries;
    const FrontierPlans& frontier_plans;
    const std::optional<PlanQuestion>& usual_question;
    std::shared_ptr<const profiler::MarksView> marks;  // null: nothing is marked
    std::shared_ptr<const RanksOfRun> rank_run;        // null: not made yet
    std::shared_ptr<const UsualPlan> usual_plan;       // null: not made yet
    std::string recipe_being_planned;                  // for the trial; empty: none
};

/// Which panels have an open window with a certain number, of those that may have several.
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

std::optional<ViewOrder<profiler::PairRequest>> order_pair(const WorkspaceState& state);
std::optional<ViewOrder<profiler::TimelineRequest>> order_timeline(const WorkspaceState& state);
std::optional<ViewOrder<profiler::RibbonRequest>> order_ribbon(const WorkspaceState& state);
std::optional<ViewOrder<profiler::KernelsRequest>> order_kernels(const WorkspaceState& state);
std::optional<ViewOrder<profiler::MarksRequest>> order_marks(const WorkspaceState& state);
std::optional<ViewOrder<profiler::LayerRequest>> order_layers(const WorkspaceState& state);
std::optional<ViewOrder<PlanQuestion>> order_planner(const WorkspaceState& state);
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

// ---- the comparison of all open traces, with what is planned for them -----------------------

/// All open documents, and the GPU for which their recipes are planned. The request owns the
/// documents, so that the old comparison stays on the screen while a file is added or closed.
struct CompareRequest {
    std::vector<DocumentPtr> documents;
    PlanChoice choice;
    std::shared_ptr<const UsualPlan> usual;  // may be of another step or GPU, or null

    friend bool operator==(const CompareRequest&, const CompareRequest&) = default;
};
struct CompareResult {
    profiler::Comparison comparison;
    profiler::CompareView view;
    /// What to plan so that the usual recipes stand beside the open ones; empty: nothing.
    std::optional<PlanQuestion> usual;
};
/// With what is known already of the plan of the first step: what would fit on the chosen GPU, and
/// how fast it would be.
models::Result<CompareResult> build_comparison(Predictor& predictor, const CompareRequest& request);

/// The same with the whole plan. Recipes that were not planned before take some tenths of a second,
/// so the comparison comes before it.
models::Result<CompareResult> build_planned_comparison(Predictor& predictor,
                                                       const CompareRequest& request,
                                                       const Predictor::Report& report);

UsualPlan build_usual_plan(Predictor& predictor, const PlanQuestion& question,
                           const Predictor::Report& report);

std::optional<ViewOrder<CompareRequest>> order_comparison(const WorkspaceState& state);
/// Disappears when other documents are open: a plan of others would leave recipes out. While the
/// recipe of B is being planned, it waits for that.
std::optional<ViewOrder<CompareRequest>> order_planned_comparison(const WorkspaceState& state);
std::optional<ViewOrder<PlanQuestion>> order_usual_plan(const WorkspaceState& state);

// ---- the Recipe frontier --------------------------------------------------------------------

/// The step of the Planner with every recipe. First those of A, B and open traces of the step, and
/// those between the two selected dots.
PlanQuestion frontier_wish(const WorkspaceState& state);

std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state);

// ---- the Ranks panel ------------------------------------------------------------------------

/// A's run: A and the open traces in its folder that are of a run of the same size. Empty: A is no
/// rank, or has no step.
std::vector<DocumentPtr> ranks_beside(const DocumentPtr& a,
                                      const std::vector<DocumentPtr>& documents);

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state);
models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents);

std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state);

// ---- the search -----------------------------------------------------------------------------

struct SearchRequest {
    std::vector<DocumentPtr> documents;  // A, and B if there is one
    std::string text;

    friend bool operator==(const SearchRequest&, const SearchRequest&) = default;
};

std::optional<ViewOrder<SearchRequest>> order_search(const WorkspaceState& state);

/// Searches, and keeps the index of the last documents, so that a key press only reads names. Used
/// by one thread: that of its slot.
class Searcher {
public:
    models::Result<profiler::SearchView> operator()(const SearchRequest& request) const;

private:
    struct Cache {
        std::vector<std::weak_ptr<const Document>> documents;
        std::shared_ptr<const profiler::SearchIndex> index;
    };
    std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();  // std::function copies
};

// ---- the slots ------------------------------------------------------------------------------

template <typename Request, typename View>
using Slot = ViewSlot<WorkspaceState, Request, View>;

struct Slots {
    explicit Slots(Predictor& predictor)
        : compare("Comparing the traces", order_comparison,
                  [&predictor](const CompareRequest& request) {
                      return build_comparison(predictor, request);
                  }),
          planned_compare(
              "Planning the recipes", order_planned_comparison,
              [&predictor](const CompareRequest& request, const Predictor::Report& report) {
                  return build_planned_comparison(predictor, request, report);
              }),
          usual_plan("Planning other recipes", order_usual_plan,
                     [&predictor](const PlanQuestion& question,
                                  const Predictor::Report& report) -> models::Result<UsualPlan> {
                         return build_usual_plan(predictor, question, report);
                     }),
          planner(
              "Planning the recipes", order_planner,
              [&predictor](const PlanQuestion& question,
                           const Predictor::Report& report) -> models::Result<PlannerResult> {
                  return build_planner(predictor, question, report);
              },
              /*finishes=*/true) {}

    Slot<CompareRequest, CompareResult> compare;
    Slot<CompareRequest, CompareResult> planned_compare;
    Slot<PlanQuestion, UsualPlan> usual_plan;
    Slot<profiler::PairRequest, profiler::PairView> pair{"Comparing A and B", order_pair,
                                                         profiler::build_pair_view};
    Slot<PlanQuestion, PlannerResult> planner;
    Slot<profiler::TimelineRequest, profiler::TimelineView> timeline{
        "Drawing the timeline", order_timeline, profiler::build_timeline_view};
    Slot<profiler::RibbonRequest, profiler::RibbonView> ribbon{
        "Laying out the modules", order_ribbon, profiler::build_ribbon_view};
    Slot<profiler::MarksRequest, profiler::MarksView> marks{"Marking calls", order_marks,
                                                            profiler::build_marks_view};
    Slot<profiler::KernelsRequest, profiler::KernelsView> kernels{
        "Laying out calls and kernels", order_kernels, profiler::build_kernels_view};
    Slot<profiler::LayerRequest, profiler::LayerView> layers{"Drawing the layer", order_layers,
                                                             profiler::build_layer_view};
    Slot<SearchRequest, profiler::SearchView> search{"Searching", order_search, Searcher()};

    Slot<profiler::FrontierRequest, profiler::RecipeFrontierView> frontier{
        "Drawing the frontier", order_frontier, profiler::build_recipe_frontier_view};

    Slot<MovementOrder, profiler::MovementView> movement{"Adding up the data movement",
                                                         order_movement, build_movement};

    Slot<std::vector<DocumentPtr>, RanksOfRun> rank_run{"Joining the ranks", order_rank_run,
                                                        build_rank_run};
    Slot<profiler::RanksRequest, profiler::RanksView> ranks{"Drawing the ranks", order_ranks,
                                                            profiler::build_ranks_view};

    static auto all_of(auto& s) {
        return std::tie(s.compare, s.planned_compare, s.usual_plan, s.pair, s.timeline, s.marks,
                        s.kernels, s.layers, s.planner, s.frontier, s.ribbon, s.movement,
                        s.rank_run, s.ranks, s.search);
    }
    /// All of them, for what the workspace does with each.
    auto all() { return all_of(*this); }
    auto all() const { return all_of(*this); }
};

/// A panel has window 1; of some panels the user may open further ones.
inline constexpr int kMostWindows = 4;

template <typename Request, typename View>
using WindowSlot = ViewSlot<WindowState, Request, View>;

/// What the windows with one number show: their queries, and the views built from them. Views of
/// closed windows are not built and take no memory; the queries stay for the case that a window
/// comes back.
struct WindowViews {
    WindowQueries queries;
    OpenPanels open;

    WindowSlot<profiler::LedgerRequest, profiler::LedgerView> ledger{
        "Listing the saved tensors", order_ledger, profiler::build_ledger_view};
    WindowSlot<profiler::FlameRequest, profiler::FlameView> flame{
        "Building the flame graph", order_flame, profiler::build_flame_view};
    WindowSlot<profiler::BlocksRequest, profiler::BlocksView> blocks{
        "Laying out the blocks", order_blocks, profiler::build_blocks_view};
    WindowSlot<profiler::LiveBlocksRequest, profiler::LiveBlocksView> live_blocks{
        "Listing the live blocks", order_live_blocks, profiler::build_live_blocks_view};
    WindowSlot<profiler::WhatIfRequest, profiler::WhatIfView> what_if{
        "Replaying the requests", order_what_if, profiler::build_what_if_view};
    WindowSlot<profiler::SegmentMapRequest, profiler::SegmentMapView> segments{
        "Drawing the segments", order_segments, profiler::build_segment_map_view};
    WindowSlot<profiler::InspectorRequest, profiler::InspectorView> inspector{
        "Describing the selection", order_inspector, profiler::build_inspector_view};
    WindowSlot<profiler::RangeRequest, profiler::RangeView> range{
        "Summing up the selected range", order_range, profiler::build_range_view};

    /// What the slots of this window make their requests from.
    WindowState state(const WorkspaceState& shared) const {
        const profiler::WhatIfView* const replay = what_if.view();
        return {shared, queries, open, replay ? replay->layout : nullptr};
    }

    static auto all_of(auto& s) {
        return std::tie(s.ledger, s.flame, s.blocks, s.live_blocks, s.what_if, s.segments,
                        s.inspector, s.range);
    }
    /// All of them, for what the workspace does with each.
    auto all() { return all_of(*this); }
    auto all() const { return all_of(*this); }
};

}  // namespace app
