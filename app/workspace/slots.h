#pragma once

#include "app/workspace/blocks_requests.h"
#include "app/workspace/frontier_requests.h"
#include "app/workspace/view_requests.h"
#include "app/workspace/view_slot.h"

#include <tuple>

/// The list of slots: one for each view that panels draw. A slot names what it does, what it should
/// show now, and how its view is built. docs/adding_a_panel.md walks through adding one.
namespace app {

template <typename Request, typename View>
using Slot = ViewSlot<SlotInputs, Request, View>;

struct Slots {
    explicit Slots(Predictor& predictor)
        : planned_compare("Planning the recipes", wanted_planned_comparison,
                          [&predictor](const PlannedCompareRequest& request) {
                              return build_planned_comparison(predictor, request);
                          }),
          planner("Planning the recipes", wanted_planner,
                  [&predictor](const PlanQuestion& q) { return build_planner(predictor, q); }) {}

    Slot<CompareRequest, CompareResult> compare{"Comparing the traces", wanted_comparison,
                                                build_comparison};
    Slot<PlannedCompareRequest, CompareResult> planned_compare;
    Slot<PlanQuestion, PlannerResult> planner;
    Slot<profiler::TimelineRequest, profiler::TimelineView> timeline{
        "Drawing the timeline", wanted_timeline, profiler::build_timeline_view};
    Slot<profiler::RibbonRequest, profiler::RibbonView> ribbon{
        "Laying out the modules", wanted_ribbon, profiler::build_ribbon_view};
    Slot<profiler::ActivityRequest, profiler::ActivityView> kernels{
        "Laying out calls and kernels", wanted_kernels, profiler::build_activity_view};
    Slot<profiler::LedgerRequest, profiler::LedgerView> ledger{
        "Listing the saved tensors", wanted_ledger, profiler::build_ledger_view};
    Slot<profiler::LayerRequest, profiler::LayerView> layers{"Drawing the layer", wanted_layers,
                                                             profiler::build_layer_view};
    Slot<profiler::FlameRequest, profiler::FlameView> flame{
        "Building the flame graph", wanted_flame, profiler::build_flame_view};
    Slot<profiler::BlocksRequest, profiler::BlocksView> blocks{
        "Laying out the blocks", wanted_blocks, profiler::build_blocks_view};
    Slot<profiler::LiveBlocksRequest, profiler::LiveBlocksView> live_blocks{
        "Listing the live blocks", wanted_live_blocks, profiler::build_live_blocks_view};
    Slot<profiler::WhatIfRequest, profiler::WhatIfView> what_if{
        "Replaying the requests", wanted_what_if, profiler::build_what_if_view};
    Slot<profiler::SegmentMapRequest, profiler::SegmentMapView> segments{
        "Drawing the segments", wanted_segments, profiler::build_segment_map_view};
    Slot<profiler::RangeRequest, profiler::RangeView> range{
        "Summing up the selected range", wanted_range, profiler::build_range_view};
    Slot<profiler::InspectorRequest, profiler::InspectorView> inspector{
        "Describing the selection", wanted_inspector, profiler::build_inspector_view};
    Slot<SearchRequest, profiler::SearchView> search{"Searching", wanted_search, Searcher()};

    Slot<profiler::FrontierRequest, profiler::RecipeFrontierView> frontier{
        "Drawing the frontier", wanted_frontier, profiler::build_recipe_frontier_view};

    Slot<MovementQuestion, profiler::MovementView> movement{"Adding up the data movement",
                                                            wanted_movement, build_movement};

    /// All of them, for what the workspace does with each.
    auto all() {
        return std::tie(compare, planned_compare, timeline, kernels, ledger, layers, flame, blocks,
                        live_blocks, what_if, segments, range, inspector, planner, frontier, ribbon,
                        search, movement);
    }
    auto all() const {
        return std::tie(compare, planned_compare, timeline, kernels, ledger, layers, flame, blocks,
                        live_blocks, what_if, segments, range, inspector, planner, frontier, ribbon,
                        search, movement);
    }
};

}  // namespace app
