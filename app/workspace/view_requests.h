#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/frontier_query.h"
#include "app/workspace/movement_requests.h"
#include "app/workspace/planner_query.h"
#include "app/workspace/ranks_requests.h"
#include "app/workspace/search_requests.h"
#include "app/workspace/time_axis.h"
#include "app/workspace/view_slot.h"
#include "app/workspace/window_queries.h"
#include "profiler/analysis/comparison.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/inspector_view.h"
#include "profiler/view/layer_view.h"
#include "profiler/view/pair_view.h"
#include "profiler/view/range_view.h"
#include "profiler/view/ribbon_view.h"
#include "profiler/view/timeline_view.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// From the state of the workspace to the requests of its slots (slots.h).
namespace app {

/// The GPU for which recipes are planned.
struct PlanChoice {
    std::string gpu = "a100-80gb";  // its id
    bool is_chosen = false;         // by the user; before that it is the GPU of A, if that has one

    friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// The usual recipes that no open file has, planned for the step of the open ones.
struct UsualPlan {
    PlanQuestion question;
    profiler::Plan plan;  // no rows if it could not be made
};

class FrontierPlans;

/// What requests are made from.
struct SlotInputs {
    const std::vector<DocumentPtr>& documents;
    const Selection& selection;
    const TimeAxis& time;
    const PlanChoice& plan_choice;
    const PlannerQuery& planner;
    const FrontierQuery& frontier;
    const FrontierPlans& frontier_plans;
    const MovementQuery& movement;
    std::shared_ptr<const profiler::MarksView> marks;  // null: nothing is marked
    const RanksQuery& ranks;
    std::shared_ptr<const RanksOfRun> rank_run;  // null: not made yet
    const SearchQuery& search;
    const std::optional<PlanQuestion>& usual_question;
    std::shared_ptr<const UsualPlan> usual_plan;  // null: not made yet
    const std::string& recipe_being_planned;      // for the trial; empty: none
};

/// Which panels have an open window with a certain number, of those that may have several.
struct OpenPanels {
    bool ledger = false;
    bool flame = false;
    bool blocks = false;
    bool inspector = false;
};

/// The same for the views of one window (window_views.h).
struct WindowInputs : SlotInputs {
    const WindowQueries& queries;
    const OpenPanels& open;
    /// Where the chosen allocator settings would put segments and blocks; null: not known.
    std::shared_ptr<const profiler::SegmentLayout> replayed;
};

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

std::optional<Wanted<CompareRequest>> wanted_comparison(const SlotInputs& inputs);
/// Disappears when other documents are open: a plan of others would leave recipes out. While the
/// recipe of B is being planned, it waits for that.
std::optional<Wanted<CompareRequest>> wanted_planned_comparison(const SlotInputs& inputs);
std::optional<Wanted<profiler::PairRequest>> wanted_pair(const SlotInputs& inputs);
std::optional<Wanted<PlanQuestion>> wanted_usual_plan(const SlotInputs& inputs);
std::optional<Wanted<profiler::TimelineRequest>> wanted_timeline(const SlotInputs& inputs);
std::optional<Wanted<profiler::RibbonRequest>> wanted_ribbon(const SlotInputs& inputs);
std::optional<Wanted<profiler::ActivityRequest>> wanted_kernels(const SlotInputs& inputs);
std::optional<Wanted<profiler::MarksRequest>> wanted_marks(const SlotInputs& inputs);
std::optional<Wanted<profiler::LedgerRequest>> wanted_ledger(const WindowInputs& inputs);
std::optional<Wanted<profiler::LayerRequest>> wanted_layers(const SlotInputs& inputs);
/// What it takes to compare the layers of two documents; `b` may be null.
profiler::LayerRequest layer_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const profiler::LayerRange& layers);
std::optional<Wanted<profiler::FlameRequest>> wanted_flame(const WindowInputs& inputs);
std::optional<Wanted<profiler::RangeRequest>> wanted_range(const WindowInputs& inputs);
/// What the Inspector of a window describes: what it has pinned, or what is selected.
inline const Selection& inspected(const InspectorQuery& query, const Selection& selection) {
    return query.pinned ? *query.pinned : selection;
}
std::optional<Wanted<profiler::InspectorRequest>> wanted_inspector(const WindowInputs& inputs);
std::optional<Wanted<PlanQuestion>> wanted_planner(const SlotInputs& inputs);

/// The timeline of A, and of B if it has a recorded step, in `window`. Has no sources when A holds
/// no recorded step, because the time axis is that of A.
profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window);

}  // namespace app
