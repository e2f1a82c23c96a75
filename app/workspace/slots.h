#pragma once

#include "app/workspace/frontier_requests.h"
#include "app/workspace/view_requests.h"
#include "app/workspace/view_slot.h"

#include <tuple>
#include <vector>

/// The list of slots: one for each view that panels draw. A slot names what it does, what it should
/// show now, and how its view is built. docs/adding_a_panel.md walks through adding one. Views of
/// which every window of a panel has its own stand in window_views.h.
namespace app {

template <typename Request, typename View>
using Slot = ViewSlot<SlotInputs, Request, View>;

struct Slots {
    explicit Slots(Predictor& predictor)
        : compare("Comparing the traces", wanted_comparison,
                  [&predictor](const CompareRequest& request) {
                      return build_comparison(predictor, request);
                  }),
          planned_compare(
              "Planning the recipes", wanted_planned_comparison,
              [&predictor](const CompareRequest& request, const Predictor::Report& report) {
                  return build_planned_comparison(predictor, request, report);
              }),
          usual_plan("Planning other recipes", wanted_usual_plan,
                     [&predictor](const PlanQuestion& question,
                                  const Predictor::Report& report) -> models::Result<UsualPlan> {
                         return build_usual_plan(predictor, question, report);
                     }),
          planner(
              "Planning the recipes", wanted_planner,
              [&predictor](const PlanQuestion& question,
                           const Predictor::Report& report) -> models::Result<PlannerResult> {
                  return build_planner(predictor, question, report);
              },
              /*finishes=*/true) {}

    Slot<CompareRequest, CompareResult> compare;
    Slot<CompareRequest, CompareResult> planned_compare;
    Slot<PlanQuestion, UsualPlan> usual_plan;
    Slot<profiler::PairRequest, profiler::PairView> pair{"Comparing A and B", wanted_pair,
                                                         profiler::build_pair_view};
    Slot<PlanQuestion, PlannerResult> planner;
    Slot<profiler::TimelineRequest, profiler::TimelineView> timeline{
        "Drawing the timeline", wanted_timeline, profiler::build_timeline_view};
    Slot<profiler::RibbonRequest, profiler::RibbonView> ribbon{
        "Laying out the modules", wanted_ribbon, profiler::build_ribbon_view};
    Slot<profiler::MarksRequest, profiler::MarksView> marks{"Marking calls", wanted_marks,
                                                            profiler::build_marks_view};
    Slot<profiler::ActivityRequest, profiler::ActivityView> kernels{
        "Laying out calls and kernels", wanted_kernels, profiler::build_activity_view};
    Slot<profiler::LayerRequest, profiler::LayerView> layers{"Drawing the layer", wanted_layers,
                                                             profiler::build_layer_view};
    Slot<SearchRequest, profiler::SearchView> search{"Searching", wanted_search, Searcher()};

    Slot<profiler::FrontierRequest, profiler::RecipeFrontierView> frontier{
        "Drawing the frontier", wanted_frontier, profiler::build_recipe_frontier_view};

    Slot<MovementQuestion, profiler::MovementView> movement{"Adding up the data movement",
                                                            wanted_movement, build_movement};

    Slot<std::vector<DocumentPtr>, RanksOfRun> rank_run{"Joining the ranks", wanted_rank_run,
                                                        build_rank_run};
    Slot<profiler::RanksRequest, profiler::RanksView> ranks{"Drawing the ranks", wanted_ranks,
                                                            profiler::build_ranks_view};

    /// All of them, for what the workspace does with each.
    auto all() {
        return std::tie(compare, planned_compare, usual_plan, pair, timeline, marks, kernels,
                        layers, planner, frontier, ribbon, movement, rank_run, ranks, search);
    }
    auto all() const {
        return std::tie(compare, planned_compare, usual_plan, pair, timeline, marks, kernels,
                        layers, planner, frontier, ribbon, movement, rank_run, ranks, search);
    }
};

}  // namespace app
