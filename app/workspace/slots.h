#pragma once

#include "app/workspace/planner_form.h"
#include "app/workspace/view_orders.h"

#include <functional>
#include <tuple>
#include <vector>

/// The slots of the workspace: one for each view that panels draw. A slot names what it does, what
/// it should show now, and how its view is built. docs/dev/adding_a_panel.md walks through
/// adding one.
namespace app {

template <typename Request, typename View>
using Slot = ViewSlot<WorkspaceState, Request, View>;

struct Slots {
    explicit Slots(Predictor& predictor)
        : compare("Comparing the traces", order_comparison,
                  std::bind_front(build_comparison, std::ref(predictor))),
          planned_compare("Planning the recipes", order_planned_comparison,
                          std::bind_front(build_planned_comparison, std::ref(predictor))),
          usual_plan("Planning other recipes", order_usual_plan,
                     std::bind_front(build_usual_plan, std::ref(predictor))),
          planner("Planning the recipes", order_planner,
                  std::bind_front(build_planner, std::ref(predictor)), /*finishes=*/true) {}

    Slot<CompareRequest, CompareResult> compare;
    Slot<CompareRequest, CompareResult> planned_compare;
    Slot<StepPlanRequest, UsualPlan> usual_plan;
    /// A pair is shown without waiting for it.
    Slot<profiler::AdviceRequest, profiler::AdviceView> advice{
        "Explaining the step", order_advice,
        [](const profiler::AdviceRequest& request, const auto&) {
            return profiler::build_advice_view(request);
        }};
    Slot<profiler::PairRequest, profiler::PairView> pair{"Comparing A and B", order_pair,
                                                         profiler::build_pair_view};
    Slot<StepPlanRequest, PlannerResult> planner;
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
                        s.rank_run, s.ranks, s.search, s.advice);
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
